package relax

import "math"

// program is a linear program: the least of cost·x for 0 <= x <= 1 and rows·x >= right.
type program struct {
	cost  []float64
	rows  sparse
	right []float64
}

// sparse is a matrix by rows.
type sparse struct {
	start  []int32
	column []int32
	value  []float64
}

// term is a coefficient of a row.
type term struct {
	column int32
	value  float64
}

func (p *program) variable(cost float64) int32 {
	p.cost = append(p.cost, cost)
	return int32(len(p.cost) - 1)
}

// atLeast adds a row.
func (p *program) atLeast(right float64, terms ...term) {
	if len(p.rows.start) == 0 {
		p.rows.start = append(p.rows.start, 0)
	}
	for _, t := range terms {
		p.rows.column = append(p.rows.column, t.column)
		p.rows.value = append(p.rows.value, t.value)
	}
	p.rows.start = append(p.rows.start, int32(len(p.rows.column)))
	p.right = append(p.right, right)
}

// transposed returns the matrix by columns.
func (m *sparse) transposed(columns int) sparse {
	t := sparse{make([]int32, columns+1), make([]int32, len(m.column)), make([]float64, len(m.value))}
	for _, j := range m.column {
		t.start[j+1]++
	}
	for j := range columns {
		t.start[j+1] += t.start[j]
	}
	at := append([]int32(nil), t.start[:columns]...)
	for i := range len(m.start) - 1 {
		for k := m.start[i]; k < m.start[i+1]; k++ {
			j := m.column[k]
			t.column[at[j]], t.value[at[j]] = int32(i), m.value[k]
			at[j]++
		}
	}
	return t
}

// times returns one entry of the matrix times a vector.
func (m *sparse) times(i int, x []float64) float64 {
	sum := 0.0
	for k := m.start[i]; k < m.start[i+1]; k++ {
		sum += m.value[k] * x[m.column[k]]
	}
	return sum
}

// The method looks at the bound that it has every few rounds, goes on from averages every few times, and ends when the bound grows no more.
const (
	lookEvery    = 50
	restartEvery = 4 * lookEvery
	patience     = 20 * lookEvery
)

// least returns what the cost is at least, at least 0, after so many rounds or fewer: when it has grown by no more than a number in some of them.
func (p *program) least(rounds int, growth float64) float64 {
	if len(p.cost) == 0 || len(p.right) == 0 {
		return 0
	}
	s := newSolver(p)
	best, before := 0.0, 0.0
	for i := 1; i <= rounds; i++ {
		s.iterate()
		if i%lookEvery == 0 {
			best = max(best, s.bound(s.y), s.bound(s.averages()))
		}
		if i%restartEvery == 0 {
			s.restart()
		}
		if i%patience == 0 {
			if best > 0 && best-before < growth*s.scale {
				break
			}
			before = best
		}
	}
	return best / s.scale
}

// solver is the primal-dual hybrid gradient method (Chambolle and Pock 2011) with their diagonal steps (2011, alpha 1), restarted from averages
// as PDLP does (Applegate et al. 2021). Whatever its dual iterate is, it proves a bound.
type solver struct {
	*program
	columns        sparse
	scale          float64
	price          []float64 // the costs times that, 1 on average
	tau, sigma     []float64 // primal and dual steps
	weight         float64   // of the dual steps against the primal ones
	x, y           []float64
	sumX, sumY     []float64
	count          int
	extra          []float64 // 2x' - x
	startX, startY []float64 // at the last restart
	mean           []float64
}

func newSolver(p *program) *solver {
	n, m := len(p.cost), len(p.right)
	s := &solver{program: p, columns: p.rows.transposed(n), weight: 1, scale: 1}
	sum, some := 0.0, 0.0
	for _, c := range p.cost {
		if c > 0 {
			sum, some = sum+c, some+1
		}
	}
	if some > 0 {
		s.scale = some / sum
	}
	for _, c := range p.cost {
		s.price = append(s.price, c*s.scale)
	}
	s.tau, s.sigma = steps(&s.columns, n), steps(&p.rows, m)
	s.x, s.y, s.sumX, s.sumY, s.extra = make([]float64, n), make([]float64, m), make([]float64, n), make([]float64, m), make([]float64, n)
	s.mean = make([]float64, m)
	s.startX, s.startY = make([]float64, n), make([]float64, m)
	return s
}

// steps returns, for each row, one over the sum of its coefficients.
func steps(m *sparse, rows int) []float64 {
	all := make([]float64, rows)
	for i := range all {
		sum := 0.0
		for _, v := range m.value[m.start[i]:m.start[i+1]] {
			sum += math.Abs(v)
		}
		if sum > 0 {
			all[i] = 1 / sum
		}
	}
	return all
}

func (s *solver) iterate() {
	for j, x := range s.x {
		to := min(1, max(0, x-s.tau[j]/s.weight*(s.price[j]-s.columns.times(j, s.y))))
		s.extra[j] = 2*to - x
		s.x[j] = to
		s.sumX[j] += to
	}
	for i, y := range s.y {
		to := max(0, y+s.sigma[i]*s.weight*(s.right[i]-s.rows.times(i, s.extra)))
		s.y[i] = to
		s.sumY[i] += to
	}
	s.count++
}

// averages returns those of the dual values since the last restart.
func (s *solver) averages() []float64 {
	for i, sum := range s.sumY {
		s.mean[i] = sum / float64(s.count)
	}
	return s.mean
}

// bound returns what dual values prove: by weak duality for any that are not negative, less what rounding may have added.
func (s *solver) bound(y []float64) float64 {
	sum, size := 0.0, 0.0
	for i, v := range y {
		sum += s.right[i] * v
		size += math.Abs(s.right[i] * v)
	}
	for j, c := range s.price {
		less := min(0, c-s.columns.times(j, y))
		sum += less
		size -= less
	}
	const rounding = 1e-10
	return sum - rounding*size
}

// restart goes on from the averages, with steps weighted by how far the primal and the dual values have moved (PDLP, section 3.3).
func (s *solver) restart() {
	primal := moved(s.x, s.sumX, s.startX, s.tau, s.count)
	dual := moved(s.y, s.sumY, s.startY, s.sigma, s.count)
	if primal > 0 && dual > 0 {
		s.weight = math.Sqrt(s.weight * math.Sqrt(dual/primal))
	}
	s.count = 0
}

// moved sets values to their averages, and returns by how much these differ from the ones before: squares, over steps.
func moved(now, sums, before, steps []float64, count int) float64 {
	far := 0.0
	for i := range now {
		mean := sums[i] / float64(count)
		if steps[i] > 0 {
			far += (mean - before[i]) * (mean - before[i]) / steps[i]
		}
		now[i], before[i], sums[i] = mean, mean, 0
	}
	return far
}
