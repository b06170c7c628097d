// Command loadgen makes the traffic of the forwarding benchmark and says what it
// cost in CPU time. README.md says why that is the cost of the whole path.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
)

const (
	sinkPort   = 5001
	tcpPort    = 5002
	answerPort = 5003
)

const usage = `loadgen: traffic, and what it costs in CPU time
  loadgen serve
  loadgen ask HOST
  loadgen established HOST COUNT
  loadgen flows SOURCE HOST COUNT FIRST
  loadgen connect HOST COUNT
`

var errUsage = errors.New("wrong arguments")

func main() {
	err := run(os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "loadgen: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	command, args := args[0], args[1:]
	switch {
	case command == "serve" && len(args) == 0:
		return serve()
	case command == "ask" && len(args) == 1:
		return ask(args[0])
	case command == "established" && len(args) == 2:
		return report(args[1], func(count int) (cost, error) { return established(args[0], count) })
	case command == "flows" && len(args) == 4:
		first, err := strconv.ParseUint(args[3], 10, 16)
		if err != nil {
			return errUsage
		}
		return report(args[2], func(count int) (cost, error) { return flows(args[0], args[1], count, int(first)) })
	case command == "connect" && len(args) == 2:
		return report(args[1], func(count int) (cost, error) { return connections(args[0], count) })
	}
	return errUsage
}

// report runs the work and prints what it cost as one line of JSON.
func report(countText string, work func(count int) (cost, error)) error {
	count, err := strconv.Atoi(countText)
	if err != nil || count < 1 {
		return errUsage
	}
	spent, err := work(count)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(spent)
}

func parseHost(text string) (netip.Addr, error) {
	host, err := netip.ParseAddr(text)
	if err != nil {
		return host, fmt.Errorf("%q is not an IP address", text)
	}
	return host, nil
}
