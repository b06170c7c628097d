package main

import (
	"encoding/binary"
	"net/netip"
)

const (
	protocolUDP  = 17
	newFlowBytes = 30 // UDP header and payload
	hopLimit     = 64
)

// packet is a whole UDP packet over IPv4 or IPv6 whose source port can be changed
// without building it anew.
type packet struct {
	bytes []byte
	udp   []byte
	// sum is the checksum before folding, with source port 0; IPv4 leaves it out.
	sum    uint32
	hasSum bool
}

// newPacket returns a packet without a source port. The kernel fills in the IPv4 header checksum.
func newPacket(source, host netip.Addr, port uint16) *packet {
	headerBytes := 40
	if host.Is4() {
		headerBytes = 20
	}
	p := &packet{bytes: make([]byte, headerBytes+newFlowBytes)}
	p.udp = p.bytes[headerBytes:]
	binary.BigEndian.PutUint16(p.udp[2:], port)
	binary.BigEndian.PutUint16(p.udp[4:], newFlowBytes)
	if host.Is4() {
		p.bytes[0] = 0x45
		binary.BigEndian.PutUint16(p.bytes[2:], uint16(len(p.bytes)))
		p.bytes[8], p.bytes[9] = hopLimit, protocolUDP
		copy(p.bytes[12:], source.AsSlice())
		copy(p.bytes[16:], host.AsSlice())
		return p
	}
	p.bytes[0] = 0x60
	binary.BigEndian.PutUint16(p.bytes[4:], newFlowBytes)
	p.bytes[6], p.bytes[7] = protocolUDP, hopLimit
	copy(p.bytes[8:], source.AsSlice())
	copy(p.bytes[24:], host.AsSlice())
	// RFC 8200, 8.1: both addresses, the length, the protocol, then the datagram itself. UDP over IPv6 must have it.
	p.hasSum = true
	p.sum = add(add(newFlowBytes+protocolUDP, p.bytes[8:40]), p.udp)
	return p
}

// setSourcePort makes the packet one of another flow.
func (p *packet) setSourcePort(port uint16) {
	binary.BigEndian.PutUint16(p.udp, port)
	if p.hasSum {
		binary.BigEndian.PutUint16(p.udp[6:], fold(p.sum+uint32(port)))
	}
}

func add(sum uint32, words []byte) uint32 {
	for at := 0; at < len(words); at += 2 {
		sum += uint32(binary.BigEndian.Uint16(words[at:]))
	}
	return sum
}

// fold returns the checksum of a sum; 0 means "none" in UDP and is written as its other form.
func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff {
		return 0xffff
	}
	return ^uint16(sum)
}
