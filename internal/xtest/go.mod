module github.com/headgate-go/headgate/internal/xtest

go 1.26.0

require (
	github.com/dunglas/httpsfv v1.1.2
	github.com/headgate-go/headgate v0.0.0
)

replace github.com/headgate-go/headgate => ../..
