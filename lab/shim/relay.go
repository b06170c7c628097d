package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"sallyport.test/lab/shim/internal/relay"
)

// relayCommand passes connections into a network namespace until SIGTERM.
func relayCommand(args []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	listen := flags.String("listen", "", "address to listen on, here; port 0 takes a free one")
	netns := flags.String("netns", "", "path of the network namespace to dial from")
	dial := flags.String("dial", "", "address to dial, there")
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	if *listen == "" || *netns == "" || *dial == "" || flags.NArg() > 0 {
		return usageError{errors.New("-listen, -netns and -dial are needed, nothing else")}
	}
	// A typing error must show now, not at the first connection.
	if _, err := os.Stat(*netns); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening %s\n", listener.Addr())
	return relay.Serve(ctx, listener, relay.DialFrom(*netns, *dial))
}
