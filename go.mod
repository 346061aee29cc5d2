module github.com/headgate-go/headgate

go 1.25
