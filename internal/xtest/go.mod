module github.com/headgate-go/headgate/internal/xtest

go 1.26.0
