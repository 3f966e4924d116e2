import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Started, start } from '../../support/command.ts'
import { type World, openWorld } from '../../support/daemons.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const
type Signal = (typeof SIGNALS)[number]

/** Attempts with each signal: each hits another moment. */
const ATTEMPTS = 5

let world: World
let made = 0
beforeAll(async () => {
  world = await openWorld({ records: 600, service: false })
  expect(await world.patchmirror('sync')).toMatchObject({ code: 0 })
  expect(await world.patchmirror('backup', join(world.dir, 'whole.zip'))).toMatchObject({ code: 0 })
})
afterAll(() => world.close())

/** Ends a process as soon as there is anything in a folder that it writes to; `late` looks later. */
async function interrupt({ child, finished }: Started, folder: string, signal: Signal, late: number) {
  while (child.exitCode === null && namesIn(folder).length === 0) await delay(1)
  for (let looks = 0; looks < late; looks++) await delay(1)
  child.kill(signal)
  return finished
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // not made yet
  }
}

/** The state digest of a mirror. */
async function digestOf(env: World['env']): Promise<string> {
  const finished = await start(['status', '--digest'], env, world.dir).finished
  expect(finished.code).toBe(0)
  expect(finished.out).toMatch(/^[0-9a-f]{64}\n/)
  return finished.out
}

function newFolder(): string {
  const folder = join(world.dir, `attempt-${++made}`)
  mkdirSync(folder)
  return folder
}

const WRITING: readonly [name: string, args: (file: string) => string[]][] = [
  ['backup', (file) => ['backup', file]],
  ['backup --private', (file) => ['backup', '--private', file]],
  ['export', (file) => ['bundle', 'export', '--unsigned', file]],
  ['export --split', (file) => ['bundle', 'export', '--unsigned', '--split', '64 KiB', file]],
]

/** A signal can come when a file has its name, before the process ends: then it is whole. Some parts alone are refused. */
async function expectWhole(file: string, [verb, ...options]: string[]): Promise<void> {
  const into = { ...world.env, PATCHMIRROR_DATA_DIR: join(newFolder(), 'data') }
  const check = verb === 'backup' ? ['restore', file] : ['bundle', 'inspect', '--verify', file]
  const { code, err } = await start(check, into, world.dir).finished
  if (code === 0) return
  expect([options.includes('--split'), err]).toEqual([true, expect.stringMatching(/^patchmirror: .*one\.zip/)])
}

for (const signal of SIGNALS)
  test.each(WRITING)(`${signal} during %s leaves no copy behind for longer than to the next run`, async (_, args) => {
    for (let late = 0; late < ATTEMPTS * 8; late += 8) {
      const folder = newFolder()
      const begun = start(args(join(folder, 'one.zip')), world.env, world.dir)
      await interrupt(begun, folder, signal, late)
      if (signal === 'SIGKILL') {
        const next = await world.patchmirror(...args(join(folder, 'another.zip')))
        expect(next).toMatchObject({ code: 0 })
      } else if (readdirSync(folder).length > 0) {
        await expectWhole(join(folder, 'one.zip'), args(''))
      }
      expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([])
    }
  })

test.each(SIGNALS)(
  '%s during a restore leaves an empty folder, a whole mirror, or one that is restored again',
  async (signal) => {
    for (let late = 0; late < ATTEMPTS * 8; late += 8) {
      const data = join(newFolder(), 'data')
      const env = { ...world.env, PATCHMIRROR_DATA_DIR: data }
      const restore = ['restore', join(world.dir, 'whole.zip')]
      const { code } = await interrupt(start(restore, env, world.dir), data, signal, late)
      if (signal === 'SIGKILL' && code !== 0) await start(restore, env, world.dir).finished
      const isWhole = code === 0 || signal === 'SIGKILL' || readdirSync(data).includes('mirror.db')
      if (isWhole) expect(await digestOf(env)).toBe(await digestOf(world.env))
      else expect(readdirSync(data)).toEqual([])
      expect(readdirSync(data).filter((name) => name.startsWith('.'))).toEqual([])
    }
  },
)
