package swap

var (
	phaseNames  = [...]string{"forward", "backward", "update"}
	opTypeNames = [...]string{"other", "conv", "pool", "activation", "norm", "linear", "attention", "dropout", "softmax", "join"}
	roleNames   = [...]string{"inner", "layer-input", "attention-out"}
	kindNames   = [...]string{"offload", "free", "prefetch", "await", "recompute", "settle"}
)

func (p Phase) String() string  { return phaseNames[p] }
func (t OpType) String() string { return opTypeNames[t] }
func (r Role) String() string   { return roleNames[r] }
func (k Kind) String() string   { return kindNames[k] }

// ParsePhase returns the phase of a name.
func ParsePhase(name string) (Phase, bool) { return parse[Phase](phaseNames[:], name) }

// ParseOpType returns the type of a name.
func ParseOpType(name string) (OpType, bool) { return parse[OpType](opTypeNames[:], name) }

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, bool) { return parse[Role](roleNames[:], name) }

// ParseKind returns the kind of a name.
func ParseKind(name string) (Kind, bool) { return parse[Kind](kindNames[:], name) }

func parse[T ~uint8](names []string, name string) (T, bool) {
	for i, n := range names {
		if n == name {
			return T(i), true
		}
	}
	return 0, false
}
