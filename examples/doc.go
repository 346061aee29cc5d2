// Package examples holds one folder per program that shows headgate in use. Its module is not released.
package examples
