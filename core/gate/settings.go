package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/headgate-go/headgate/core/limit"
)

// All names every policy of a gate, in SetMode and Settings.Modes.
const All = "*"

// Settings is what can be changed while a gate runs, as one snapshot.
type Settings struct {
	// Modes by policy; All is for those not named. A policy in neither keeps the mode that it was configured with.
	Modes map[string]Mode
	// Overrides of single keys.
	Overrides []Override
}

// Override replaces the limit of one key, until a time.
type Override struct {
	Policy string
	Key    []string   // what the limiter's Key yields, one string per part
	Limit  limit.Rule // of a RequestRate
	Max    int        // of a ConcurrentRequests
	Until  time.Time  // zero: until replaced
	Reason string     // for the audit log
}

// Source brings settings from somewhere, and again whenever they change.
type Source interface {
	// Watch calls apply with every snapshot, until ctx ends; then it returns. An error of apply means that nothing of
	// the snapshot was taken over.
	Watch(ctx context.Context, apply func(Settings) error) error
}

// snapshot is the compiled form: what a request reads, once.
type snapshot struct {
	settings Settings
	modes    []Mode // by policy index
}

// Apply replaces the settings with s, all of it or nothing: an error names everything that is wrong with it. Requests
// already decided keep the mode they met. The zero Settings returns to what was configured.
func (g *Gate) Apply(s Settings) error {
	g.settingsMu.Lock()
	defer g.settingsMu.Unlock()
	return g.apply(s)
}

// SetMode changes the mode of one policy, or of [All] of them: then earlier changes of single ones are forgotten. It
// takes effect at the next request.
func (g *Gate) SetMode(policy string, m Mode) error {
	g.settingsMu.Lock()
	defer g.settingsMu.Unlock()
	s := g.state.Load().settings
	if policy == All {
		s.Modes = map[string]Mode{All: m}
	} else {
		s.Modes = maps.Clone(s.Modes)
		if s.Modes == nil {
			s.Modes = map[string]Mode{}
		}
		s.Modes[policy] = m
	}
	return g.apply(s)
}

func (g *Gate) apply(s Settings) error {
	var errs []error
	for policy, m := range s.Modes {
		if policy != All && g.policy(policy) == nil {
			errs = append(errs, g.unknownPolicy(policy))
		}
		if m > Off {
			errs = append(errs, fmt.Errorf("policy %q: mode %d is none of Enforce, Shadow and Off", policy, m))
		}
	}
	if len(s.Overrides) > 0 {
		errs = append(errs, fmt.Errorf("Overrides: %w", errNotBuilt))
	}
	if len(errs) > 0 {
		return fmt.Errorf("gate: Apply: %w", errors.Join(errs...))
	}
	s.Modes = maps.Clone(s.Modes) // the caller's map stays the caller's
	g.state.Store(g.compile(s))
	if g.refusals != nil {
		g.refusals.Clear()
	}
	g.observe(Event{Kind: SettingsChanged, Context: context.Background(), Gate: g.name})
	return nil
}

// compile makes what a request reads out of settings that are known to be right.
func (g *Gate) compile(s Settings) *snapshot {
	next := &snapshot{settings: s, modes: make([]Mode, len(g.policies))}
	for i, p := range g.policies {
		next.modes[i] = p.mode
		if m, ok := s.Modes[All]; ok {
			next.modes[i] = m
		}
		if m, ok := s.Modes[p.name]; ok {
			next.modes[i] = m
		}
	}
	return next
}
