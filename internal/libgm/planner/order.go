package planner

import (
	"context"
	"encoding/json"

	"gm/internal/libgm/planner/wire"
	"gm/internal/order"
	"gm/internal/order/request"
	"gm/internal/order/solve"
)

// orders answers with an order of operators.
func orders(body []byte) (answered wire.Message, err error) {
	r, err := request.Read(body)
	if err != nil {
		return answered, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Limit())
	defer cancel()
	made := solve.Order(ctx, order.Link(r.Problem()), solve.Default())
	text, err := json.Marshal(request.Answer{Order: made.Order, Peak: made.Peak, Bound: made.Bound, Method: made.Method})
	return wire.Message{Kind: wire.Order, Body: text}, err
}
