module github.com/headgate-go/headgate/stores/rueidisstore

go 1.26.0

require (
	github.com/headgate-go/headgate v0.0.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/headgate-go/headgate => ../..
