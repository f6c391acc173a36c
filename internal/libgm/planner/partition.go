package planner

import (
	"encoding/json"

	"gm/internal/libgm/planner/wire"
	"gm/internal/swap/partition"
	"gm/internal/swap/partition/choose"
)

// partitions answers with what a compiled graph saves.
func partitions(body []byte) (answered wire.Message, err error) {
	r, err := partition.Read(body)
	if err != nil {
		return answered, err
	}
	made, err := choose.Answer(r)
	if err != nil {
		return answered, err
	}
	text, err := json.Marshal(made)
	return wire.Message{Kind: wire.Partition, Body: text}, err
}
