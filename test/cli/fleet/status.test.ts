import { expect, test } from 'vitest'
import { describeLease, leaderOrFormer, withLags } from '../../../src/features/fleet/cli/status.ts'
import type { StoredLease } from '../../../src/features/fleet/lease/lease.ts'
import { toIso } from '../../../src/base/time.ts'
import type { KnownGeneration } from '../../../src/features/fleet/generations/format/generation.ts'

const NOW = Date.parse('2026-06-01T00:00:00.000Z')
const at = (seconds: number): string => toIso(NOW + seconds * 1000)

const LEASE = {
  epoch: 3,
  owner: 'a1',
  token: 't',
  name: 'a',
  url: null,
  seconds: 30,
  renewal: 7,
  expiresAt: at(10),
  released: false,
}

/** A lease as a store has it, whose leader wrote it so many seconds ago. */
const stored = (ago: number, more: Partial<typeof LEASE> = {}): StoredLease => ({
  lease: { ...LEASE, ...more },
  etag: '"x"',
  writtenAt: NOW - ago * 1000,
})
const NONE: StoredLease = { lease: null, etag: null, writtenAt: 0 }

test.each([
  [stored(20), /^lease: a, epoch 3, until 2026-06-01T00:00:10/],
  [stored(20, { expiresAt: at(-300) }), /^lease: a, epoch 3, until /], // the leader's clock is behind
  [stored(90, { expiresAt: at(300) }), /that of a .+ was not renewed; no mirror leads, unless the clock here/],
  [stored(20, { released: true }), /given back by a .+; no mirror leads/],
  [NONE, /^lease: none$/],
])(
  'the line on the lease names a leader only while one leads, whatever the clock of the leader shows: %#',
  (lease, line) => {
    expect(describeLease(lease, NOW)).toMatch(line)
  },
)

test.each([
  ['a1', stored(20), at(-60), 'leader'],
  ['b2', stored(20), at(-60), 'former leader'],
  ['a1', stored(31), at(-60), 'former leader'],
  ['a1', stored(20, { released: true }), at(-60), 'former leader'],
  ['a1', NONE, at(-60), 'leader'],
  ['a1', NONE, at(-7200), 'former leader'],
])('a mirror that said that it leads is: %#', (id, lease, said, part) => {
  expect(leaderOrFormer({ id, at: said }, lease, NOW)).toBe(part)
})

test('the lag of a mirror is counted from the first generation that it does not serve, whatever it said, and is not known without that one', async () => {
  const generation = (number: number): KnownGeneration => {
    const made = { generation: number, activateAt: at(10 * number - 100) }
    return { generation: made, sha256: '' } as unknown as KnownGeneration
  }
  const report = {
    id: '',
    name: '',
    site: null,
    role: 'reader',
    leads: false,
    version: '',
    address: null,
    deflater: null,
    stopped: false,
    at: '',
  }
  const mirrors = [0, 3, 4, 5, 7, 8].map((number) => ({ ...report, generation: number, lagSeconds: 0 }))
  const read = (number: number): Promise<KnownGeneration | null> => {
    if (number === 4) return Promise.reject(new Error('it is refused'))
    return Promise.resolve(number === 5 || number === 8 ? null : generation(number))
  }
  const lags = await withLags(mirrors, generation(8), read, NOW)
  expect(lags.map(({ lagSeconds }) => lagSeconds)).toEqual([null, null, null, 40, 20, 0])
  const unknown = await withLags(mirrors, null, read, NOW)
  expect(unknown.map(({ lagSeconds }) => lagSeconds)).toEqual(mirrors.map(() => null))
})
