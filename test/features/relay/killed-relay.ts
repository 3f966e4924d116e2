import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { NOW } from '../../store/fixtures.ts'
import { beginFindings, logFindings } from './findings-log.ts'
import { SECRET, bench, target } from './targets.ts'

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))

function start(dir: string, url: string): ChildProcess {
  const args = [CHILD, dir, url, SECRET]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/**
 * Kills a relay so many times between sending an event and recording it; expects that every event arrives, with its own id and
 * bytes, and that a kill has no more sent twice than what was under way. `total` is at least four events for each kill.
 */
export async function relayAndKill(total: number, kills: number): Promise<void> {
  const made = bench({ targets: [] }, undefined, NOW)
  const texts = new Map<string, string>()
  for (let n = 0; n < total; n++) {
    texts.set(`msg_${n}`, `{"n":${n}}`)
    made.deliver(`msg_${n}`, { body: `{"n":${n}}` })
  }
  const to = await target()
  for (let round = 1; round <= kills; round++) {
    // The answer is what the child waits for: it dies with the event taken and its row not yet written.
    const reached = new Promise<void>((resolve) => {
      to.manner = (response) => {
        if (round % 2 === 0) response.writeHead(204).end()
        if (new Set(to.ids()).size >= round * 4) resolve()
        else if (round % 2 === 1) response.writeHead(204).end()
      }
    })
    const child = start(made.dir, to.url)
    await reached
    await kill(child)
  }
  to.manner = 204
  const last = start(made.dir, to.url)
  const left = () => made.outbox.listTargets().map(({ pending }) => pending)
  await expect.poll(left).toEqual([0])
  await kill(last)
  expect(new Set(to.ids())).toEqual(new Set(texts.keys()))
  for (const { id, body, signed } of to.got) {
    expect(body.toString()).toBe(texts.get(id))
    expect(signed).toBe(true)
  }
  // Each kill can make no more than what was under way be sent twice.
  expect(to.got.length - total).toBeLessThanOrEqual(2 * kills)
}

/**
 * Kills a relay so many times while it adds changed findings to the outbox; expects one event for each snapshot, each delivered,
 * and none again under another id.
 */
export async function collectAndKill(snapshots: number, kills: number): Promise<void> {
  const to = await target()
  const made = bench({ targets: [to.url], events: ['findings'] }, undefined, NOW)
  const log = beginFindings(made.dir)
  made.relay.judged()
  made.relay.tick()
  made.relay.stop()
  for (let n = 1; n <= snapshots; n++) logFindings(made.dir, `s${n}`, ['library/python:3.12'])
  const inOutbox: number[] = []
  for (let round = 1; round <= kills; round++) {
    const child = start(made.dir, to.url)
    const enough = (round * snapshots) / (kills + 1)
    await expect.poll(() => made.outbox.lastEvent() >= enough, { interval: 1 }).toBe(true)
    await kill(child)
    inOutbox.push(made.outbox.lastEvent())
  }
  expect(inOutbox[0]).toBeLessThan(snapshots) // it was killed in the middle
  const last = start(made.dir, to.url)
  const ids = new Set(Array.from({ length: snapshots }, (_, at) => `tags_${log}_${at + 1}-${at + 1}`))
  await expect.poll(() => new Set(to.ids().map((id) => id.replace(/^pm_[0-9a-f]+_/, '')))).toEqual(ids)
  await expect.poll(() => made.outbox.listTargets().map(({ pending }) => pending)).toEqual([0])
  await kill(last)
  expect(made.outbox.lastEvent()).toBe(snapshots)
}
