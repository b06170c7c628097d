package main

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestPacketNamesBothEnds(t *testing.T) {
	for _, ends := range [][2]string{{"10.244.1.1", "10.6.0.200"}, {"fd44::1", "fd06::200"}} {
		source, host := netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])
		p := newPacket(source, host, sinkPort)
		p.setSourcePort(4242)
		at, width := 12, 4
		if host.Is6() {
			at, width = 8, 16
		}
		gotSource, _ := netip.AddrFromSlice(p.bytes[at : at+width])
		gotHost, _ := netip.AddrFromSlice(p.bytes[at+width : at+2*width])
		if gotSource != source || gotHost != host {
			t.Errorf("packet from %v to %v, want %v to %v", gotSource, gotHost, source, host)
		}
		if port := binary.BigEndian.Uint16(p.udp); port != 4242 {
			t.Errorf("source port %d, want 4242", port)
		}
	}
}

// A receiver adds up everything including the checksum and gets all ones (RFC 1071).
func TestChecksumOfEveryPortIsValid(t *testing.T) {
	p := newPacket(netip.MustParseAddr("fd44:0:0:1::1"), netip.MustParseAddr("2001:db8::ffff"), sinkPort)
	for port := range 1 << 16 {
		p.setSourcePort(uint16(port))
		if p.udp[6] == 0 && p.udp[7] == 0 {
			t.Fatalf("port %d: no checksum", port)
		}
		sum := add(add(newFlowBytes+protocolUDP, p.bytes[8:40]), p.udp)
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		if sum != 0xffff {
			t.Fatalf("port %d: sum %#x, want 0xffff", port, sum)
		}
	}
}
