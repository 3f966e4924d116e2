import { describe, expect, test } from 'vitest'
import { readNetwork } from '../../../src/base/connections/network.ts'
import { createTrust, isLoopbackAddress } from '../../../src/server/http/client-address.ts'
import { clientNetwork, plainAddress } from '../../../src/base/connections/network.ts'

test.each([
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['::FFFF:127.0.0.1', '127.0.0.1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['[2001:DB8::1]', '2001:db8::1'],
  ['::ffff:999.1.1.1', '::ffff:999.1.1.1'],
  ['10.0.0.7', '10.0.0.7'],
])('the address %s is written as %s', (address, plain) => {
  expect(plainAddress(address)).toBe(plain)
})

test.each([
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['10.0.0.1', false],
  ['127.0.0.1.example.com', false],
  ['localhost', false],
  ['', false],
  [undefined, false],
])('the address %s is a loopback address: %s', (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected)
})

test.each([
  ['10.0.0.7', '10.0.0.7'],
  ['::ffff:10.0.0.7', '10.0.0.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
  ['2001:0db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
  ['1::3:4:5:6:7:8', '1:0:3:4::/64'],
  ['unknown', 'unknown'],
])('failures of the client %s are counted for %s', (address, network) => {
  expect(clientNetwork(address)).toBe(network)
})

describe('trust', () => {
  const trusted = createTrust(['10.0.0.0/8', '192.0.2.7', 'fd00::/8', '::1'])

  test.each([
    ['10.255.0.1', true],
    ['::ffff:10.0.0.1', true],
    ['11.0.0.1', false],
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['fd12::1', true],
    ['fe80::1', false],
    ['::1', true],
    ['127.0.0.1', false],
    ['unknown', false],
    [undefined, false],
  ])('in %s includes the address %s', (address, expected) => {
    expect(trusted(address)).toBe(expected)
  })

  test('in an empty list includes no address', () => {
    expect(createTrust([])('127.0.0.1')).toBe(false)
  })

  test.each(['proxy.example.com', '10.0.0.0/33', 'fd00::/129', '10.0.0/8', '', '*', 'fe80::1%e'])(
    'in %j is no network, which the check of the settings refuses',
    (entry) => {
      expect(readNetwork(entry)).toBeNull()
    },
  )
})
