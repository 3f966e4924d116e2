import { expect, test } from 'vitest'
import { createTrusted } from '../../../src/base/connections/network.ts'

test.each([
  [['store.internal'], 'store.internal', true],
  [['store.internal'], 'STORE.internal', true],
  [['store.internal'], 'other.store.internal', false],
  [['*.corp.example'], 'a.b.corp.example', true],
  [['*.corp.example'], 'corp.example', false],
  [['*.corp.example'], 'evilcorp.example', false],
  [['10.0.0.0/8'], '10.1.2.3', true],
  [['10.0.0.0/8'], '11.1.2.3', false],
  [['10.0.0.0/8'], 'ten.example', false],
  [['192.0.2.7'], '192.0.2.8', false],
  [['fd00::/8'], '[fd00::1]', true],
  [['fd00::/8'], '[fe80::1]', false],
  [['*'], 'anything', true],
  [[], '127.0.0.1', false],
])('%j and %s: %s', (entries, host, isTrusted) => {
  expect(createTrusted(entries)(host)).toBe(isTrusted)
})
