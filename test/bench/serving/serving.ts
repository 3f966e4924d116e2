import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { count } from '../report/figures.ts'
import { type Line, type Options, type Value, atLeast, defineGroup } from '../report/group.ts'
import { type ServerChild, startChild } from './child.ts'
import { type Filled, fillStore } from './fill.ts'
import { type Measured, measure } from './load.ts'
import { startNginx } from './nginx.ts'

type Name = 'bare' | 'socket' | 'nginx' | 'mirror'
type Coding = 'gzip' | 'identity'
const CODINGS = ['gzip', 'identity'] as const
const CONNECTIONS = 32
/** Seconds of a measurement, and into how many rounds over all servers they are divided: the machine's speed drifts. */
const SECONDS = 4
const ROUNDS = 4

/** A store under load: how many ids are asked for, and the mirror's `server.cacheBytes`. */
interface Load {
  readonly name: 'warm' | 'small'
  readonly ids: number
  readonly cacheBytes: number
  readonly note: string
}

const LOADS: readonly Load[] = [
  { name: 'warm', ids: 15_000, cacheBytes: 64_000_000, note: 'warm' },
  { name: 'small', ids: 100_000, cacheBytes: 8_000_000, note: 'cold' },
]

/** What is to be reached against each server. */
const GOALS: Readonly<Record<Load['name'], Partial<Record<`${Coding} ${Name}`, number>>>> = {
  warm: { 'gzip bare': 0.8, 'gzip nginx': 1.2, 'identity bare': 0.8, 'identity nginx': 1.2 },
  small: { 'gzip bare': 0.55 },
}
const AGAINST = {
  bare: 'bare Fastify, one buffer',
  socket: 'socket of Node, one buffer',
  nginx: 'nginx, the same files',
} as const

interface Store {
  readonly dir: string
  readonly filled: Filled
}

interface World {
  readonly stores: Readonly<Record<Load['name'], Store>>
  close(): Promise<void>
}

/** Requests per second of each server; nginx is missing where it is not installed. */
type Rates = Readonly<Partial<Record<Name, Measured>>>
type Run = Readonly<Record<`${Load['name']} ${Coding}`, Rates>>

/** `GET {id}.json` in random order: the mirror, a bare Fastify route that sends one buffer, and nginx with the same files. */
export const serving = defineGroup<World, Run>({
  name: 'serving',
  about: ({ size }) => {
    const ids = LOADS.map((load) => `${count(size(load.ids))} (${load.note})`)
    return `\`GET {id}.json\` over ${CONNECTIONS} connections, of ${ids.join(' or ')} ids. Cold: the cache holds few of them.`
  },
  prepare({ size }) {
    const root = mkdtempSync(join(tmpdir(), 'patchmirror-serving-'))
    const close = (): Promise<void> => Promise.resolve(rmSync(root, { recursive: true }))
    const store = ({ name, ids }: Load): Store => {
      const dir = join(root, name)
      return { dir, filled: fillStore(join(dir, 'data'), size(ids), join(dir, 'files')) }
    }
    const stores = Object.fromEntries(LOADS.map((load) => [load.name, store(load)]))
    return Promise.resolve({ stores: stores as World['stores'], close })
  },
  async run({ stores }, options) {
    const taken: [string, Rates][] = []
    for (const load of LOADS)
      for (const coding of CODINGS)
        taken.push([`${load.name} ${coding}`, await inTurn(stores[load.name], load, coding, options)])
    return Object.fromEntries(taken) as Run
  },
  lines: () =>
    LOADS.flatMap((load) =>
      CODINGS.flatMap((coding) => [
        lineOf(load, coding, 'bare'),
        lineOf(load, coding, 'socket'),
        lineOf(load, coding, 'nginx'),
      ]),
    ),
})

function lineOf(load: Load, coding: Coding, server: keyof typeof AGAINST): Line<Run> {
  const work = `${load.note}, ${coding}`
  const limit = GOALS[load.name][`${coding} ${server}`]
  return {
    work,
    against: AGAINST[server],
    unit: '×',
    ...(limit === undefined ? {} : { goal: atLeast(limit) }),
    measure: (run) => compared(run[`${load.name} ${coding}`], server),
  }
}

function compared({ mirror, ...others }: Rates, server: keyof typeof AGAINST): Value | null {
  const other = others[server]
  if (mirror === undefined || other === undefined) return null
  const failures = mirror.failures + other.failures
  const wrong = failures === 0 ? '' : `, ${failures} failures`
  const rates = `${Math.round(mirror.rate)}/${Math.round(other.rate)} a second`
  return { value: mirror.rate / other.rate, detail: rates + wrong }
}

/** Warms all servers of a store, then puts one after the other under the same load. */
async function inTurn({ dir, filled }: Store, { cacheBytes }: Load, coding: Coding, options: Options): Promise<Rates> {
  const size = Math.round(coding === 'gzip' ? filled.member : filled.content)
  const servers: [Name, ServerChild][] = [
    ['bare', await startChild('bare-child.ts', [String(size)])],
    ['socket', await startChild('socket-child.ts', [String(size)])],
    ['mirror', await startChild('mirror-child.ts', [join(dir, 'data'), String(cacheBytes)])],
  ]
  const nginx = await startNginx(join(dir, 'nginx'), join(dir, 'files'))
  if (nginx !== null) servers.push(['nginx', nginx])
  try {
    const load = { ids: filled.ids, gzip: coding === 'gzip', connections: CONNECTIONS }
    const seconds = options.seconds(SECONDS)
    // Warm: each has answered for every record, and its code is optimized.
    for (const [, server] of servers)
      for (const length of [null, Math.max(2, seconds / 2)]) await measure(server, { ...load, seconds: length })
    const taken: [Name, Measured][] = []
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, server] of servers)
        taken.push([name, await measure(server, { ...load, seconds: seconds / ROUNDS })])
    return Object.fromEntries(servers.map(([name]) => [name, joined(name, taken)]))
  } finally {
    for (const [, server] of servers) await server.stop()
  }
}

/** The rounds of a server as one measurement: all are of the same length. */
function joined(server: Name, rounds: readonly [Name, Measured][]): Measured {
  const own = rounds.flatMap(([name, one]) => (name === server ? [one] : []))
  const sum = (of: (one: Measured) => number): number => own.reduce((all, one) => all + of(one), 0)
  return { rate: sum(({ rate }) => rate) / own.length, failures: sum(({ failures }) => failures) }
}
