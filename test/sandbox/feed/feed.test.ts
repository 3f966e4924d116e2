import AdmZip from 'adm-zip'
import { describe, expect } from 'vitest'
import type { Sandbox } from '../server.ts'
import { exchange } from '../exchange.ts'
import { JSON_PATH, ZIP_PATH, recordPath, sandboxes } from '../fixtures.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const open = sandboxes()

interface Seen {
  etags: (string | undefined)[]
  moved: number[]
  index: Map<string, string>
}

/** The index's and the archive's validators, and what the index says. */
async function look({ url }: Sandbox): Promise<Seen> {
  const index = await exchange(url + JSON_PATH)
  const archive = await exchange(url + ZIP_PATH, {}, { method: 'HEAD' })
  const entries = JSON.parse(index.body.toString()) as { id: string; modified: string }[]
  return {
    etags: [index.headers.etag, archive.headers.etag],
    moved: [index, archive].map(({ headers }) => Date.parse(headers['last-modified'] ?? '')),
    index: new Map(entries.map(({ id, modified }) => [id, modified])),
  }
}

/** Every file must agree with every other one. */
async function expectConsistent({ url, feed }: Sandbox): Promise<void> {
  const { body } = await exchange(url + ZIP_PATH)
  const members = new AdmZip(body).getEntries()
  expect(members.map((member) => member.entryName)).toEqual(feed.ids().map((id) => `${id}.json`))
  for (const member of members) {
    const id = member.entryName.slice(0, -'.json'.length)
    expect(member.getData().equals(feed.record(id)), id).toBe(true)
    expect(JSON.parse(feed.record(id).toString())).toHaveProperty('modified', feed.modified(id))
  }
}

describe('a feed command', () => {
  const commands = [
    'add',
    'change',
    'changeSilently',
    'withdraw',
    'lowerFixes',
    'empty',
    'remove',
    'moveBackwards',
  ] as const

  bothTest.each(telling(commands, 'change', 'changeSilently', 'remove'))(
    '%s publishes a new index and archive that agree',
    async (command) => {
      const sandbox = await open()
      const before = await look(sandbox)
      const ids = sandbox.feed[command](4)
      const after = await look(sandbox)
      expect(new Set(ids).size).toBe(4)
      expect(after.etags[1]).not.toBe(before.etags[1])
      if (command !== 'changeSilently') expect(after.etags[0]).not.toBe(before.etags[0])
      expect(after.moved[0]).toBeGreaterThan(before.moved[0] ?? NaN)
      expect(after.moved[1]).toBeGreaterThan(before.moved[1] ?? NaN)
      await expectConsistent(sandbox)
    },
  )

  test('add adds new ids, and remove removes ids', async () => {
    const sandbox = await open()
    const before = sandbox.feed.ids()
    const added = sandbox.feed.add(5)
    expect(added.some((id) => before.includes(id))).toBe(false)
    const removed = sandbox.feed.remove(3)
    expect(sandbox.feed.ids()).toHaveLength(before.length + 2)
    expect((await exchange(sandbox.url + recordPath(removed[0] ?? ''))).status).toBe(404)
  })

  test('change moves the stamp forward, changeSilently keeps it, moveBackwards moves it backwards', async () => {
    const sandbox = await open({ now: () => Date.UTC(2026, 10, 1, 12) })
    const before = await look(sandbox)
    const old = new Map(sandbox.feed.ids().map((id) => [id, sandbox.feed.record(id)]))
    const differs = (id: string) => !sandbox.feed.record(id).equals(old.get(id) ?? Buffer.alloc(0))
    const time = (stamp: string | undefined) => Date.parse(stamp ?? '')
    for (const id of sandbox.feed.change(3)) {
      expect(time(sandbox.feed.modified(id))).toBeGreaterThan(time(before.index.get(id)))
      expect(differs(id)).toBe(true)
    }
    const middle = await look(sandbox)
    for (const id of sandbox.feed.changeSilently(3)) {
      expect(sandbox.feed.modified(id)).toBe(middle.index.get(id))
      expect(differs(id)).toBe(true)
    }
    for (const id of sandbox.feed.moveBackwards(3)) {
      expect(time(sandbox.feed.modified(id))).toBeLessThan(time(middle.index.get(id)))
    }
  })

  test('a silent change shows in the record’s own ETag only', async () => {
    const sandbox = await open()
    const before = await look(sandbox)
    const etags = new Map<string, string | undefined>()
    for (const id of sandbox.feed.ids()) {
      etags.set(id, (await exchange(sandbox.url + recordPath(id))).headers.etag)
    }
    const [id = ''] = sandbox.feed.changeSilently(1)
    const { headers } = await exchange(sandbox.url + recordPath(id))
    expect(headers.etag).not.toBe(etags.get(id))
    expect((await look(sandbox)).index).toEqual(before.index)
  })

  test('withdraw marks the record', async () => {
    const { feed } = await open()
    const [id = ''] = feed.withdraw(1)
    expect(JSON.parse(feed.record(id).toString())).toHaveProperty('withdrawn')
  })

  test('put and delete change exactly the given records', async () => {
    const { feed, url } = await open()
    const text = '{ "id": "MINE-1",\t"modified": "2026-01-02T03:04:05.6Z" }\n'
    expect(feed.put('MINE-1', text)).toEqual(['MINE-1'])
    expect((await exchange(`${url}/external/osv/MINE-1.json`)).body.toString()).toBe(text)
    expect(feed.modified('MINE-1')).toBe('2026-01-02T03:04:05.6Z')
    feed.put('MINE-1', 'not json', 'whenever')
    expect(feed.index().toString()).toContain('{"id":"MINE-1","modified":"whenever"}')
    expect(feed.delete('MINE-1')).toEqual(['MINE-1'])
    expect(feed.delete('MINE-1')).toEqual([])
    expect(() => feed.record('MINE-1')).toThrow('no record')
  })

  test('without a change publishes nothing', async () => {
    const sandbox = await open()
    const before = await look(sandbox)
    expect(sandbox.feed.change(0)).toEqual([])
    expect(await look(sandbox)).toEqual(before)
  })

  longTest('repeated in one second still gives increasing dates, none in the future', async () => {
    const now = Date.UTC(2026, 10, 1)
    const sandbox = await open({ now: () => now })
    let last = 0
    for (let i = 0; i < 200; i++) {
      sandbox.feed.put('A', String(i))
      const { headers } = await exchange(sandbox.url + JSON_PATH, {}, { method: 'HEAD' })
      const moved = Date.parse(headers['last-modified'] ?? '')
      expect(moved).toBeGreaterThan(last)
      expect(moved).toBeLessThanOrEqual(now)
      last = moved
    }
  })

  test('gives the same feed for the same seed and clock', async () => {
    const now = () => Date.UTC(2026, 10, 1)
    const a = await open({ now })
    const b = await open({ now })
    for (const { feed } of [a, b]) {
      feed.change(5)
      feed.remove(2)
      feed.add(3)
    }
    expect(a.feed.archive().equals(b.feed.archive())).toBe(true)
    expect(a.feed.index().equals(b.feed.index())).toBe(true)
  })
})

describe('a frozen file', () => {
  test('archive stays unchanged while the index changes, until it is thawed', async () => {
    const sandbox = await open()
    const before = await look(sandbox)
    sandbox.feed.freezeArchive()
    const [id = ''] = sandbox.feed.add(1)
    const frozen = await look(sandbox)
    expect(frozen.etags[1]).toBe(before.etags[1])
    expect(frozen.moved[1]).toBe(before.moved[1])
    expect(frozen.index.has(id)).toBe(true)
    sandbox.feed.thawArchive()
    const after = await look(sandbox)
    expect(after.moved[1]).toBeGreaterThan(before.moved[1] ?? NaN)
    await expectConsistent(sandbox)
  })

  test('index stays unchanged while records and archive change', async () => {
    const sandbox = await open()
    sandbox.feed.freezeIndex()
    const before = await look(sandbox)
    const [id = ''] = sandbox.feed.add(1)
    expect((await look(sandbox)).index).toEqual(before.index)
    expect((await exchange(sandbox.url + recordPath(id))).status).toBe(200)
    sandbox.feed.thawIndex()
    expect((await look(sandbox)).index.has(id)).toBe(true)
  })
})

describe('a living feed', () => {
  test('changes by its plan until it is stopped', async () => {
    const { feed } = await open()
    const before = feed.ids().length
    const live = feed.live(5, { add: 1 })
    await expect.poll(() => feed.ids().length).toBeGreaterThan(before + 1)
    live.stop()
    const after = feed.ids().length
    const other = feed.live(5, { touchFeeds: true, change: 1 })
    other.stop()
    expect(feed.ids()).toHaveLength(after)
  })
})

test('lowerFixes lowers each fix by one, and empty leaves id and date', async () => {
  const { feed } = await open()
  const fixesOf = (id: string): number[] =>
    [
      ...feed
        .record(id)
        .toString()
        .matchAll(/"fixed": ?"[^"]*?(\d+)\D*"/g),
    ].map(([, last]) => Number(last))
  const before = new Map(feed.ids().map((id) => [id, fixesOf(id)]))
  const lowered = feed.lowerFixes(3)
  expect(lowered).toHaveLength(3)
  for (const id of lowered) expect(fixesOf(id)).toEqual((before.get(id) ?? []).map((last) => last - 1))
  const [emptied = ''] = feed.empty(1)
  const { schema_version: _, ...rest } = JSON.parse(feed.record(emptied).toString()) as Record<string, unknown>
  expect(rest).toEqual({ id: emptied, modified: feed.modified(emptied) })
})
