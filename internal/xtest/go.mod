module github.com/headgate-go/headgate/internal/xtest

go 1.26.0

require (
	github.com/dunglas/httpsfv v1.1.2
	github.com/headgate-go/headgate v0.0.0
	github.com/headgate-go/headgate/stores/goredisstore v0.0.0
	github.com/headgate-go/headgate/stores/rueidisstore v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/headgate-go/headgate => ../..

replace github.com/headgate-go/headgate/stores/goredisstore => ../../stores/goredisstore

replace github.com/headgate-go/headgate/stores/rueidisstore => ../../stores/rueidisstore
