package driver

// MaxParts is the most parts that a [Parted] store may have.
const MaxParts = 64

// Parted is implemented by stores of which a part may fail while the others go on, as a node of a cluster does. A gate then
// gives up on a part that is down, and not on the whole.
type Parted interface {
	// Parts is how many there are, 1 to [MaxParts]. It is always the same.
	Parts() int
	// Part is where the state of subject is, 0 to Parts()-1.
	Part(subject string) int
}

// PartialError is the failure of some parts of a [Parted] store. What was asked of the others may have been done.
type PartialError struct {
	Parts uint64 // a bit for each part that failed, the lowest for part 0
	Err   error  // of one of them
}

// Error implements error.
func (e *PartialError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PartialError) Unwrap() error { return e.Err }

// FailedParts returns the parts that the errors in the tree of err name, 0 if there are none.
func FailedParts(err error) uint64 {
	switch e := err.(type) {
	case *PartialError:
		return e.Parts
	case interface{ Unwrap() error }:
		return FailedParts(e.Unwrap())
	case interface{ Unwrap() []error }:
		var parts uint64
		for _, one := range e.Unwrap() {
			parts |= FailedParts(one)
		}
		return parts
	}
	return 0
}
