import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import type { MirrorProblem } from '../../../src/server/status/problem.ts'
import { WEBHOOKS_SCHEMA } from '../../../src/store/database/schema/webhooks.ts'
import { unknownAdvice } from '../../../src/store/database/migration-copy.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { settle } from '../../support/damage.ts'
import { seconds, startDaemon } from '../daemons.ts'
import { longTest, test } from '../../support/tables.ts'
import { deliveryOf, send } from '../receive/receivers.ts'
import { scratch } from './inboxes.ts'

/** A data folder with records and an inbox; returns the path of webhooks.db. */
function filled(): { dir: string; path: string } {
  const dir = scratch()
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}' })
  store.close()
  openInbox(dir).close()
  const path = join(dir, 'webhooks.db')
  settle(path)
  return { dir, path }
}

async function deliver(port: number): Promise<number> {
  const { status } = await send(port, {
    ...deliveryOf({ timestamp: seconds() }),
    path: '/-/webhooks',
  })
  return status
}

async function inboxProblems(port: number): Promise<MirrorProblem[]> {
  const { body } = await send(port, { path: '/-/status', method: 'GET' })
  const { problems } = JSON.parse(body) as { problems: MirrorProblem[] }
  return problems.filter(({ code }) => code === 'webhooks')
}

/** The warnings and errors in a log. */
function faultsIn(lines: readonly string[]): string[] {
  const logged = lines
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: number; msg: string })
  return logged.filter(({ level }) => level >= 40).map(({ msg }) => msg)
}

test('a damaged webhooks.db is one line of the log, and one problem with its start and whole effect', async () => {
  const { dir, path } = filled()
  writeFileSync(path, 'this is not a database'.repeat(500))
  const { port, lines } = await startDaemon({}, dir)
  const [problem, ...more] = await inboxProblems(port)
  expect(faultsIn(lines)).toEqual([expect.stringContaining('webhooks.db is damaged')])
  expect(await deliver(port)).toBe(503)
  expect(more).toEqual([])
  expect(problem).toMatchObject({
    detail: expect.stringMatching(/^webhooks\.db is damaged .*doctor --data --repair/) as string,
    since: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    effect: expect.stringContaining('events that waited for the relay are lost') as string,
  })
})

longTest.each(['without a copy', 'with a copy'])(
  'the advice about a webhooks.db of a newer program, %s, leads to an inbox that takes deliveries',
  async (which) => {
    const { dir, path } = filled()
    const copy = join(dir, 'backups', 'webhooks-schema-7.db')
    if (which === 'with a copy') {
      mkdirSync(join(dir, 'backups'))
      copyFileSync(path, copy)
    }
    const newer = new Database(path)
    newer.pragma('user_version = 99')
    newer.close()
    const first = await startDaemon({}, dir)
    expect(await deliver(first.port)).toBe(503)
    const [problem] = await inboxProblems(first.port)
    expect(problem?.detail).toContain('webhooks.db has schema 99')
    expect(problem?.detail).toContain(unknownAdvice(path, WEBHOOKS_SCHEMA).replaceAll(`${dir}/`, ''))
    expect(problem?.detail).toContain('move webhooks.db, webhooks.db-wal and webhooks.db-shm away')
    await first.agent.close()
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    if (which === 'with a copy') {
      expect(problem?.detail).toContain('copy backups/webhooks-schema-7.db to webhooks.db')
      copyFileSync(copy, path)
    }
    const second = await startDaemon({}, dir)
    expect(await deliver(second.port)).toBe(202)
    expect(await inboxProblems(second.port)).toEqual([])
  },
)
