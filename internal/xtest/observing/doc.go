// Package observing holds the tests of telemetry that need third parties: frameworks with their OpenTelemetry middleware,
// Prometheus, and a real Redis server.
package observing
