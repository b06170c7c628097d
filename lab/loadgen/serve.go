package main

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

const answerLimit = time.Second

// serve is the outside. It runs until it is killed.
func serve() error {
	// Never read: the kernel drops what does not fit into the smallest buffer, which costs the sender least.
	sink, err := net.ListenUDP("udp", &net.UDPAddr{Port: sinkPort})
	if err != nil {
		return err
	}
	defer sink.Close()
	if err := sink.SetReadBuffer(1); err != nil {
		return err
	}
	answers, err := net.ListenUDP("udp", &net.UDPAddr{Port: answerPort})
	if err != nil {
		return err
	}
	defer answers.Close()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{Port: tcpPort})
	if err != nil {
		return err
	}
	defer listener.Close()
	failed := make(chan error, 2)
	go func() { failed <- takeConnections(listener) }()
	go func() { failed <- answerWithAddress(answers) }()
	fmt.Println("ready")
	return <-failed
}

func takeConnections(listener *net.TCPListener) error {
	for {
		connection, err := listener.AcceptTCP()
		if err != nil {
			return err
		}
		connection.Close()
	}
}

func answerWithAddress(socket *net.UDPConn) error {
	question := make([]byte, 1)
	for {
		_, from, err := socket.ReadFromUDPAddrPort(question)
		if err != nil {
			return err
		}
		// One who asks and does not wait for the answer is no reason to stop.
		_, _ = socket.WriteToUDPAddrPort([]byte(from.Addr().Unmap().String()), from)
	}
}

// ask prints the address that the outside sees.
func ask(hostText string) error {
	host, err := parseHost(hostText)
	if err != nil {
		return err
	}
	socket, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, answerPort)))
	if err != nil {
		return err
	}
	defer socket.Close()
	if _, err := socket.Write([]byte{'?'}); err != nil {
		return err
	}
	if err := socket.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	answer := make([]byte, 64)
	length, err := socket.Read(answer)
	if err != nil {
		return fmt.Errorf("%v does not answer: %w", host, err)
	}
	fmt.Println(string(answer[:length]))
	return nil
}
