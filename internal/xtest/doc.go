// Package xtest holds the tests of the root module's packages that need a third party, so that the root module
// itself requires nothing. Its module is not released.
package xtest
