package main

import (
	"gm/internal/swap/server"
	"gm/internal/swap/server/hold"
)

// keptShares is what a former server has shared by keys, and what keeps that and more for the next one.
type keptShares struct {
	keeper server.Keeper
	all    []hold.Held
	ready  func() error // says that the server serves
	end    func() error // in an orderly end
}

// keepShares takes over what systemd or a holder keeps. A failure costs what was shared, and is told to log.
func keepShares(path string, log func(text string)) keptShares {
	none := func() error { return nil }
	systemd, all, err := hold.FindSystemd()
	if err != nil {
		log(err.Error())
	}
	ready := none
	if systemd != nil {
		ready = systemd.Ready
	}
	if systemd != nil && systemd.Stores() { // and knows whether this is the end of the service
		return keptShares{systemd, all, ready, none}
	}
	holder, all, err := hold.FindHolder(path)
	if err != nil {
		log(err.Error())
	}
	return keptShares{holder, all, ready, holder.End}
}
