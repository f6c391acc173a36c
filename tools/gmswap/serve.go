package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gm/internal/cli"
	"gm/internal/swap/server"
	"gm/internal/swap/server/wire"
	"gm/internal/units"
)

type serveCmd struct {
	Idle    time.Duration     `placeholder:"TIME" help:"Put a job to sleep that has launched nothing for so long, such as 30s. Without it jobs sleep only when others need memory, or by gmswap ctl."`
	Quantum time.Duration     `default:"30s" placeholder:"TIME" help:"How long a job that computes keeps its memory while another waits for it (${default})."`
	Weight  map[string]string `placeholder:"NAME=N" help:"A job of this name keeps it N times as long; may be repeated."`
	Host    units.Bytes       `placeholder:"SIZE" help:"Pin at most this much host memory, all jobs together. Three quarters of what is available by default."`
	Quota   map[string]string `placeholder:"NAME=SIZE" help:"A job of this name takes at most this much of each card; may be repeated."`
	Metrics string            `placeholder:"ADDRESS" help:"Serve OpenMetrics at a port of this machine, such as 127.0.0.1:9400, or a unix socket's path."`
	Socket  string            `placeholder:"FILE" help:"The socket. By default GM_SERVER, or gmswap.sock in XDG_RUNTIME_DIR or in /tmp/gm.UID."`
}

// Help implements kong.HelpProvider.
func (cmd *serveCmd) Help() string {
	return "Example: gmswap serve --idle 30s\n\n" +
		"It serves until Ctrl-C, and says what it does on standard error. Jobs are those of gmswap run --server and gmstitch run --server. " +
		"Their memory stays their own: when the server ends, those that sleep wake when they next need their memory. " +
		"What is shared by keys is there for the next server if this one is killed or systemd starts it again, and goes with Ctrl-C."
}

// Run implements the command.
func (cmd *serveCmd) Run(c *cli.Context) error {
	settings, err := cmd.settings()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	log := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(c.Err, "%s %s\n", time.Now().Format(time.TimeOnly), text)
	}
	l, err := wire.Listen(pathOf(cmd.Socket))
	if err != nil {
		return err
	}
	defer l.Close()
	defer c.OwnSignals()()
	kept := keepShares(pathOf(cmd.Socket), log)
	settings.Keeper = kept.keeper
	s := server.New(settings, log)
	s.Resume(kept.all)
	if cmd.Metrics != "" {
		end, err := serveMetrics(cmd.Metrics, s)
		if err != nil {
			return err
		}
		defer end()
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, cli.Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	ended := make(chan error, 1)
	go func() {
		<-stop
		ended <- kept.end() // while there can be no other server
		l.Close()
	}()
	fmt.Fprintf(c.Err, "gmswap serves at %s\n", pathOf(cmd.Socket))
	if err := errors.Join(kept.ready(), s.Serve(l)); err != nil {
		return err
	}
	return <-ended
}

func (cmd *serveCmd) settings() (server.Settings, error) {
	if cmd.Idle < 0 || cmd.Quantum <= 0 {
		return server.Settings{}, cli.Usage("--idle and --quantum are times such as 30s")
	}
	var left int64
	if cmd.Host == 0 {
		available, err := availableMemory(os.DirFS("/"))
		if err != nil {
			return server.Settings{}, fmt.Errorf("find out how much host memory there is: %w; --host says how much to use", err)
		}
		cmd.Host = units.Bytes(available / 4 * 3)
		total, err := meminfo(os.DirFS("/"), "proc/meminfo", "MemTotal")
		if err != nil {
			return server.Settings{}, err
		}
		left = total / 4 * 3
	}
	quotas := map[string]int64{}
	for name, text := range cmd.Quota {
		n, err := units.ParseAmount(text)
		if err == nil && n == 0 {
			err = errors.New("expected more than 0 bytes")
		}
		if err != nil {
			return server.Settings{}, cli.Usage("--quota %s=%s: %v", name, text, err)
		}
		quotas[name] = int64(n)
	}
	weights, err := cmd.weights()
	return server.Settings{Idle: cmd.Idle, Quantum: cmd.Quantum, Weights: weights, Host: int64(cmd.Host), Left: left, Quotas: quotas}, err
}

func (cmd *serveCmd) weights() (map[string]int, error) {
	const (
		most    = 1000
		longest = 100 * 365 * 24 * time.Hour // well within a time.Duration
	)
	if cmd.Quantum > longest {
		return nil, cli.Usage("--quantum %s: a turn is at most %s long", cmd.Quantum, longest)
	}
	weights := map[string]int{}
	for name, text := range cmd.Weight {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, cli.Usage("--weight %s=%s: expected a whole number from 1 to %d", name, text, most)
		}
		if cmd.Quantum > longest/time.Duration(n) {
			return nil, cli.Usage("--weight %s=%d with --quantum %s: a turn is at most %s long", name, n, cmd.Quantum, longest)
		}
		weights[name] = n
	}
	return weights, nil
}

func pathOf(socket string) string {
	if socket != "" {
		return socket
	}
	return wire.Path()
}

// serveMetrics serves the accounts of a server until end is called, at a port that only this machine reaches, or a socket.
func serveMetrics(address string, s *server.Server) (end func(), err error) {
	network := "unix"
	if host, _, err := net.SplitHostPort(address); err == nil && !strings.Contains(address, "/") {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return nil, cli.Usage("--metrics %s: expected an address of this machine, such as 127.0.0.1:9400, or a path", address)
		}
		network = "tcp"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	web := http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
			_ = s.WriteMetrics(w) // who reads no more needs no answer
		}),
	}
	go web.Serve(l)
	return func() { web.Close() }, nil
}
