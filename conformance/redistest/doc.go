// Package redistest starts real redis-server processes for tests, on free loopback ports, and a proxy that makes the
// network between a test and a server misbehave.
//
// Nothing is skipped: where no server can be found the test fails and says how to get one. A server's
// files lie in a temporary folder, in memory where the machine has /dev/shm (HEADGATE_REDIS_DIR names another place); it never
// uses port 6379, and dies with the test process.
//
//	srv := redistest.Start(t, redistest.Single)
//	store := goredisstore.New(redis.NewClient(&redis.Options{Addr: srv.Addr()}))
//
// A cluster, and a primary that sentinels watch, are more than one server. Both need Redis 7.0 or later.
//
//	nodes := redistest.Start(t, redistest.Cluster).Nodes()
//	store := goredisstore.New(redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs()}))
//	primary := nodes.Owner(nodes.Slot(key))
//	primary.Stop()
//	primary = nodes.AwaitFailover(primary)
package redistest
