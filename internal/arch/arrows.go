package arch

import "strings"

// arrow says what files of some folders may import. Folders and our packages are written "./core/...": the folder and
// all below it. Of imports, "std" is the standard library, "other" everything of third parties, and a plain path with
// "/..." that path and all below it. What a package imports from its own folder, from below it, or from its own
// nested module is always allowed.
type arrow struct {
	name   string
	from   string
	except string
	files  files
	may    []string // nil: everything
	never  []string
	why    string
}

type files int

const (
	code  files = iota // without tests
	tests              // only tests
	both
)

var arrows = []arrow{
	{
		name: "core-alone", from: "./core/...",
		may: []string{"std", "./core/..."},
		why: "whoever imports a limiter gets no framework, no Redis client and no telemetry with it",
	}, {
		name: "core-tests", from: "./core/...", files: tests,
		may: []string{"std", "./core/...", "./conformance/..."},
		why: "tests of core that need more live in internal/xtest, so that core is tested without anything else",
	}, {
		name: "core-no-http", from: "./core/...",
		never: []string{"net/http/..."},
		why:   "Fiber is not net/http; a net/http type in core would leave it out",
	}, {
		name: "driver-lowest", from: "./core/driver/...",
		may: []string{"std"},
		why: "who writes a store needs core/driver only, so it depends on nothing of ours",
	}, {
		name: "limit-on-driver", from: "./core/limit/...",
		may: []string{"std", "./core/driver/..."},
		why: "arrows point down: a rule knows nothing of gates, stores and shedding",
	}, {
		name: "memory-on-driver", from: "./core/memory/...",
		may: []string{"std", "./core/driver/..."},
		why: "the in-process store is a store like every other one",
	}, {
		name: "shed-on-driver", from: "./core/shed/...",
		may: []string{"std", "./core/driver/..."},
		why: "arrows point down: shedding knows nothing of gates and stores",
	}, {
		name: "machinery-below-gate", from: "./core/internal/...",
		never: []string{"./core/gate/..."},
		why:   "arrows point down: core/gate uses its machinery, not the other way round",
	}, {
		name: "adapter-on-gate", from: "./adapters/...",
		may: []string{"std", "other", "./core/gate/..."},
		why: "an adapter translates a framework's context and has no policy, so core/gate is all that it needs",
	}, {
		name: "adapter-alone", from: "./adapters/...", files: both,
		never: []string{"./adapters/...", "./stores/..."},
		why:   "one framework must not bring another framework or a Redis client with it",
	}, {
		name: "redisscript-without-client", from: "./stores/redisscript/...",
		may: []string{"std", "./core/driver/..."},
		why: "script and codec serve every client, so they know none",
	}, {
		name: "store-on-driver", from: "./stores/...",
		may: []string{"std", "other", "./core/driver/...", "./stores/redisscript/..."},
		why: "a store decides claims, and knows neither gates nor the other clients",
	}, {
		name: "store-tests", from: "./stores/...", files: tests,
		may: []string{"std", "other", "./core/...", "./conformance/...", "./stores/redisscript/..."},
		why: "one Redis client must not bring another one with it",
	}, {
		name: "storetest-on-driver", from: "./conformance/storetest/...",
		may: []string{"std", "./core/driver/..."},
		why: "other people's stores run this suite, and need core/driver only",
	}, {
		name: "adaptertest-on-core", from: "./conformance/adaptertest/...",
		may: []string{"std", "./core/gate/...", "./core/shed/...", "./core/memory/...", "./core/limit/...", "./core/driver/..."},
		why: "other people's adapters run this suite, and need no store and no framework but their own",
	}, {
		name: "redistest-on-nothing", from: "./conformance/redistest/...",
		may: []string{"std", "./conformance/redistest/..."},
		why: "it starts servers for anybody's tests, whatever they test",
	}, {
		name: "faulttest-on-gate", from: "./conformance/faulttest/...",
		may: []string{"std", "./conformance/redistest/...", "./adapters/httpgate/...", "./core/gate/...", "./core/limit/...", "./core/driver/..."},
		why: "it faces a store as a service does: through a gate, and with no client of its own",
	}, {
		name: "control-on-gate", from: "./control/...",
		may: []string{"std", "./core/gate/...", "./core/shed/...", "./core/limit/...", "./core/driver/..."},
		why: "arrows point down: control talks to a gate through its public face",
	}, {
		name: "telemetry-on-gate", from: "./telemetry/...",
		may: []string{"std", "other", "./core/gate/...", "./core/shed/...", "./core/limit/...", "./core/driver/..."},
		why: "arrows point down: telemetry observes a gate through its public face",
	}, {
		name: "telemetry-api-only", from: "./telemetry/...",
		never: []string{"go.opentelemetry.io/otel/sdk/..."},
		why:   "a library uses the OpenTelemetry API; which SDK runs is the application's choice",
	}, {
		name: "no-testing", from: "./...", except: "./conformance/...",
		never: []string{"testing/..."},
		why:   "package testing registers flags and does not belong in programs; only the suites are made of it",
	},
}

func (a arrow) check(r *Repo, bad report) {
	for _, f := range r.Files {
		if f.Test && a.files == code || !f.Test && a.files == tests {
			continue
		}
		if !match(a.from, "./"+f.Dir) || a.except != "" && match(a.except, "./"+f.Dir) {
			continue
		}
		for _, p := range f.Imports {
			name, own := r.importName(f, p)
			if !own && (a.may != nil && !matchAny(a.may, name) || matchAny(a.never, name)) {
				bad(f.Path, "imports %s", p)
			}
		}
	}
}

// importName writes an import path as arrows do, and reports whether it is of the file's own folder or nested module.
func (r *Repo) importName(f *File, importPath string) (name string, own bool) {
	dir, ours := r.local(importPath)
	if !ours {
		return importPath, false
	}
	nested := f.Module.Dir != "." && r.moduleOf(dir) == f.Module
	return "./" + dir, nested || below(dir, f.Dir)
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(p, name) {
			return true
		}
	}
	return false
}

func match(pattern, name string) bool {
	first, _, _ := strings.Cut(name, "/")
	standard := first != "." && !strings.Contains(first, ".")
	switch pattern {
	case "std":
		return standard
	case "other":
		return !standard && first != "."
	}
	top, tree := strings.CutSuffix(pattern, "/...")
	return name == top || tree && strings.HasPrefix(name, top+"/")
}
