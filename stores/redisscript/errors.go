package redisscript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/headgate-go/headgate/core/driver"
)

// Classify gives an error of a client its class: a failure of the network by its type, an answer of the server by the
// word that it begins with. It returns nil for nil, and an error that has a class already as it is.
//
// Where the cause is one that an operator must remove (permissions, a server that cannot run the script), the error says so.
func Classify(err error) *driver.Error {
	if err == nil {
		return nil
	}
	if e := (*driver.Error)(nil); errors.As(err, &e) {
		return e
	}
	class, hint := classOf(err)
	if hint != "" {
		err = fmt.Errorf("redisscript: %s: %w", hint, err)
	}
	return &driver.Error{Class: class, Err: err}
}

func classOf(err error) (driver.Class, string) {
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return driver.ClassTimeout, ""
	case errors.As(err, &network):
		if network.Timeout() {
			return driver.ClassTimeout, ""
		}
		return driver.ClassOther, ""
	case errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return driver.ClassOther, ""
	}
	return classOfText(err.Error())
}

// answers are the words that answers of a server begin with.
var answers = map[string]driver.Class{
	"NOSCRIPT":    driver.ClassNoScript,
	"MOVED":       driver.ClassClusterDown,
	"ASK":         driver.ClassClusterDown,
	"TRYAGAIN":    driver.ClassClusterDown,
	"CLUSTERDOWN": driver.ClassClusterDown,
	"MASTERDOWN":  driver.ClassClusterDown,
	"READONLY":    driver.ClassReadOnly,
	"LOADING":     driver.ClassLoading,
	"MISCONF":     driver.ClassOOM,
	"NOREPLICAS":  driver.ClassOOM,
	"OOM":         driver.ClassOOM,
	"BUSY":        driver.ClassBusy,
	"UNKILLABLE":  driver.ClassBusy,
	"NOAUTH":      driver.ClassAuth,
	"WRONGPASS":   driver.ClassAuth,
	"NOPERM":      driver.ClassAuth,
	"WRONGTYPE":   driver.ClassOther,
	"CROSSSLOT":   driver.ClassOther,
}

// causes are parts of answers that say too little by themselves.
var causes = []struct {
	part  string
	class driver.Class
	hint  string
}{
	{"unknown command", driver.ClassOther,
		"the server or a proxy before it does not run scripts; EVALSHA and EVAL are needed"},
	{"The user executing the script can't", driver.ClassAuth, hintPermission},
	{"No permissions to access a key", driver.ClassAuth, hintPermission},
	{"global variable 'struct'", driver.ClassOther,
		"the server's Lua has no struct library; a server like Redis 5 or newer is needed"},
	{"after non deterministic commands", driver.ClassOther, "the server is too old; a server like Redis 5 or newer is needed"},
	{"connection pool timeout", driver.ClassTimeout, ""}, // go-redis
	{"redis: nil", driver.ClassProtocol, ""},             // go-redis: a nil where there should be a string
	{"redis nil message", driver.ClassProtocol, ""},      // rueidis
}

const hintPermission = "the user lacks a permission; the store needs +evalsha +eval +time +get +mget +set +zcard +zcount +zadd " +
	"+zscore +zrem +zremrangebyscore +pttl +pexpire +del and its keys; its client in a cluster +cluster|slots +cluster|shards +asking"

func classOfText(text string) (driver.Class, string) {
	for _, c := range causes {
		if strings.Contains(text, c.part) {
			return c.class, c.hint
		}
	}
	word, class := answerWord(text)
	if word == "NOPERM" {
		return class, hintPermission
	}
	return class, ""
}

// answerWord finds the word that tells the class of an answer, and the class.
func answerWord(text string) (string, driver.Class) {
	text = strings.TrimPrefix(text, "-")
	text = strings.TrimPrefix(text, "ERR ") // Kvrocks puts it in front of other words
	word, _, _ := strings.Cut(text, " ")
	if class, ok := answers[word]; ok {
		return word, class
	}
	// Before Redis 7 an error inside a script is told in the middle of another one.
	if strings.HasPrefix(text, "Error running script") {
		for part := range strings.FieldsSeq(text) {
			part = strings.TrimPrefix(part, "-")
			if class, ok := answers[part]; ok {
				return part, class
			}
		}
	}
	return "", driver.ClassOther
}

// hitsOthers says whether a call failed for the sake of one request: the value of a key is of a type that is not ours, or the
// keys of one are on the move. The script reads everything before it writes, so nothing was executed, and each request may be
// sent by itself: one bad key must not fail every request that shares a call with it.
func hitsOthers(err error) bool {
	word := wordOf(err)
	return word == "WRONGTYPE" || word == "TRYAGAIN"
}

// wordOf returns the word that a classified answer begins with.
func wordOf(err error) string {
	cause := errors.Unwrap(err)
	if cause == nil {
		return ""
	}
	word, _ := answerWord(cause.Error())
	return word
}
