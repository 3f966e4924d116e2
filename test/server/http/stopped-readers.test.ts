import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { openArchiveFile } from '../../../src/server/http/send-file.ts'

const SIZE = 200_000
/** The limits of `send-file.ts`: readers that may stop, and after how long one counts as stopped. */
const MOST = 128
const STOPPED_MS = 5_000

/** A reader as the archive sees it, of which the test decides when it takes more. */
class Reader extends EventEmitter {
  destroyed = false
  ended = false
  chunks = 0
  write(_chunk: Buffer, sent: () => void): boolean {
    this.chunks++
    sent()
    return false
  }
  end(): void {
    this.ended = true
  }
  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** An open archive, and how to begin downloads of it that have taken their first chunk. */
function archive(): (count: number) => Promise<Reader[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-stopped-'))
  writeFileSync(join(dir, 'all.zip'), Buffer.alloc(SIZE))
  const info = { file: 'all.zip', size: SIZE, sha256: Buffer.alloc(32), crc32c: 0 }
  const opened = openArchiveFile(dir, info as unknown as Parameters<typeof openArchiveFile>[1])
  const all: Reader[] = []
  const sent: Promise<void>[] = []
  onTestFinished(async () => {
    for (const one of all) one.destroy()
    await Promise.all(sent)
    opened.release()
    rmSync(dir, { recursive: true, force: true })
  })
  return async (count) => {
    const begun = Array.from({ length: count }, () => new Reader())
    all.push(...begun)
    for (const one of begun) sent.push(opened.send(one as unknown as ServerResponse, 0, SIZE - 1))
    while (begun.some(({ chunks }) => chunks === 0)) await turn()
    return begun
  }
}

test('the client that stopped reading first is disconnected when too many have stopped', async () => {
  const begin = archive()
  const [first, ...others] = await begin(MOST)
  vi.advanceTimersByTime(STOPPED_MS + 1)
  const [next] = await begin(1)
  expect([first, ...others, next].filter((one) => one?.destroyed)).toEqual([]) // as many as there may be
  vi.advanceTimersByTime(STOPPED_MS + 1)
  await begin(1)
  expect(first?.destroyed).toBe(true)
  expect([...others, next].filter((one) => one?.destroyed)).toEqual([])
})

test('clients that continue to read are never disconnected, whatever their number', async () => {
  const begin = archive()
  const readers = await begin(MOST + 20)
  vi.advanceTimersByTime(STOPPED_MS + 1)
  for (const one of readers) one.emit('drain')
  while (readers.some(({ chunks }) => chunks < 2)) await turn()
  await begin(10)
  expect(readers.filter(({ destroyed }) => destroyed)).toEqual([])
})

test('a client that reads nothing for two minutes is disconnected', async () => {
  const [reader] = await archive()(1)
  vi.advanceTimersByTime(119_000)
  expect(reader?.destroyed).toBe(false)
  vi.advanceTimersByTime(1_000)
  expect(reader?.destroyed).toBe(true)
})
