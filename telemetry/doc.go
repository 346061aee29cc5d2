// Package telemetry tells OpenTelemetry what gates decide: as metrics, on the request's own span, and tenant by tenant.
//
//	g, err := gate.New(gate.Config{
//		Observer: telemetry.NewObserver(telemetry.WithTenants(20)),
//		...
//	})
//
// It uses the OpenTelemetry API only: which SDK runs, and where it sends what, is the application's choice. Without an SDK
// nothing is recorded. Instruments, attributes, span attributes and events are listed in docs/telemetry.md; a Grafana
// dashboard and Prometheus alerts are in the folders dashboards and alerts.
//
// Nothing is labelled with a key, an address or a path: routes are templates, errors are classes, and a tenant is named by
// the digest under which stores know it, unless [WithTenantName] says how.
package telemetry

// ScopeName is the instrumentation scope of every instrument and span.
const ScopeName = "github.com/headgate-go/headgate/telemetry"

// Version is the scope's version, that of all modules of headgate.
const Version = "0.1.0"
