package adaptertest

import (
	"github.com/headgate-go/headgate/core/gate"
)

// variant is how the gates of a case speak: the dialects of their fields, and the form of their refusals' bodies. What a
// case asserts about fields and bodies adapts to it.
type variant struct {
	name    string // of the dialects
	headers gate.HeaderSet
	problem bool
}

// Names of the two forms of a body.
const (
	bodyJSON    = "json"
	bodyProblem = "problem"
)

// variants are all of them. Every case runs in the first one, with a gate's defaults; those that record, in all.
var variants = func() (list []variant) {
	for _, problem := range []bool{false, true} {
		for _, v := range dialects {
			list = append(list, variant{v.name, v.headers, problem})
		}
	}
	return list
}()

var dialects = []variant{
	{name: "standard", headers: gate.HeadersStandard},
	{name: "draft", headers: gate.HeadersDraft},
	{name: "legacy", headers: gate.HeadersLegacy},
	{name: "none", headers: gate.HeadersNone},
	{name: "all", headers: gate.HeadersStandard | gate.HeadersDraft | gate.HeadersLegacy},
}

func (v variant) body() string {
	if v.problem {
		return bodyProblem
	}
	return bodyJSON
}

func (v variant) String() string { return v.name + "-" + v.body() }

// speaks says whether the gates send a dialect.
func (v variant) speaks(dialect gate.HeaderSet) bool { return v.headers&dialect != 0 }

// config fills in what a case left to the variant.
func (v variant) config(c *gate.Config) {
	if c.Headers == 0 && v.headers != gate.HeadersStandard { // 0 is that one: a gate's default is tested too
		c.Headers = v.headers
	}
	if c.Body == nil && v.problem {
		c.Body = gate.ProblemJSON
	}
}

// contentType is the one of a refusal.
func (v variant) contentType() string {
	if v.problem {
		return "application/problem+json"
	}
	return "application/json"
}

// either chooses by the form of the body.
func (v variant) either(json, problem string) string {
	if v.problem {
		return problem
	}
	return json
}

// in is the variant with other dialects, for gates that choose their own.
func (v variant) in(headers gate.HeaderSet) variant {
	v.headers = headers
	return v
}
