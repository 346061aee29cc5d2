package redisscript

import (
	"context"

	"github.com/headgate-go/headgate/core/driver"
)

// Reset implements [driver.Inspector]: it deletes the keys of every kind of rule. Decisions under way may write them anew.
func (s *Store) Reset(ctx context.Context, policy, subject string) error {
	if s.err != nil {
		return &driver.Error{Class: driver.ClassOther, Err: s.err}
	}
	var r request
	del := []string{"DEL"}
	for _, kind := range [...]string{kindBucket, kindWindow, kindSlots} {
		del = append(del, r.keyOf(s.prefix, policy, subject, kind))
	}
	j := s.queue.newJob(0)
	j.commands, j.slot = [][]string{del}, Slot(del[1])
	if err := s.ask(ctx, j); err != nil {
		return err
	}
	s.queue.recycle(j)
	return nil
}
