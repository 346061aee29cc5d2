package redisscript

import (
	"testing"

	"github.com/headgate-go/headgate/conformance/redistest"
	"github.com/headgate-go/headgate/conformance/storetest"
	"github.com/headgate-go/headgate/core/driver"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.Single)
	store := func(t testing.TB) driver.Store { return openStore(t, srv.Addr()) }
	storetest.Run(t, store)
	storetest.RunSpread(t, store)
	storetest.RunWindows(t, store)
	storetest.RunSlots(t, store)
	storetest.RunSlotsSpread(t, store)
}
