import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import { beforeAll, beforeEach, describe, expect } from 'vitest'
import type { Fault } from './fault.ts'
import type { Sandbox } from '../server.ts'
import { type Exchange, exchange } from '../exchange.ts'
import { JSON_PATH, ZIP_PATH, recordPath, sandboxes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const open = sandboxes()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await open()
})
beforeEach(() => sandbox.faults.clear())

/** Asks a path once under a fault. */
function under(
  fault: Fault,
  path = JSON_PATH,
  headers: Record<string, string> = {},
  options: { method?: string; giveUpMs?: number } = {},
): Promise<Exchange> {
  sandbox.faults.set(path, fault)
  return exchange(sandbox.url + path, headers, options)
}

/** The whole answer as text, for one that no HTTP client would accept. */
async function raw(fault: Fault): Promise<string> {
  sandbox.faults.set(JSON_PATH, fault)
  const socket = connect(sandbox.port, '127.0.0.1')
  socket.write(`GET ${JSON_PATH} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n\r\n`)
  return text(socket)
}

const idsOf = ({ body }: Exchange) => (JSON.parse(body.toString()) as { id: string }[]).map((entry) => entry.id)

describe('a fault', () => {
  const broken: Fault = { kind: 'status', status: 503 }
  const status = async (path: string, method = 'GET') => (await exchange(sandbox.url + path, {}, { method })).status

  test('spares `after` requests, hits `times` requests, and ends', async () => {
    const handle = sandbox.faults.set(JSON_PATH, broken, { after: 1, times: 2 })
    const seen = []
    for (let i = 0; i < 4; i++) seen.push(await status(JSON_PATH))
    expect(seen).toEqual([200, 503, 503, 200])
    expect(handle.hits()).toBe(2)
  })

  test('hits only its paths and methods', async () => {
    sandbox.faults.set('/external/osv/*.json', broken)
    sandbox.faults.set(/patch_feed$/, broken, { method: 'HEAD' })
    expect(await status(JSON_PATH)).toBe(503)
    expect(await status(recordPath('ROOT-OS-DEBIAN-bookworm- CVE-2023-0911'))).toBe(503)
    expect(await status(ZIP_PATH)).toBe(200)
    expect(await status('/external/patch_feed')).toBe(200)
    expect(await status('/external/patch_feed', 'HEAD')).toBe(503)
  })

  test('may name a record by its plain id', async () => {
    sandbox.faults.set('/external/osv/ROOT-APP-PYPI-CVE-2024-100%.json', broken)
    expect(await status(recordPath('ROOT-APP-PYPI-CVE-2024-100%'))).toBe(503)
  })

  test('is applied in the order of setting, and can be cleared by itself', async () => {
    sandbox.faults.set(JSON_PATH, { kind: 'status', status: 500 }, { times: 1 })
    const second = sandbox.faults.set(JSON_PATH, { kind: 'status', status: 502 })
    expect([await status(JSON_PATH), await status(JSON_PATH)]).toEqual([500, 502])
    second.clear()
    expect(await status(JSON_PATH)).toBe(200)
  })
})

describe('a fault on the wire', () => {
  test('status: answers any code with headers and body', async () => {
    const headers = { 'Retry-After': '7', 'X-RateLimit-Remaining': '0' }
    const limited = await under({ kind: 'status', status: 429, headers })
    expect(limited.status).toBe(429)
    expect(limited.headers).toMatchObject({ 'retry-after': '7', 'x-ratelimit-remaining': '0' })
    expect(JSON.parse(limited.body.toString())).toHaveProperty('message')
    sandbox.faults.clear()
    const worded = await under({ kind: 'status', status: 500, body: 'oh' })
    expect(worded.body.toString()).toBe('oh')
  })

  longTest('stall: sends nothing, or nothing after the headers, or continues after a while', async () => {
    const silent = await under({ kind: 'stall' }, JSON_PATH, {}, { giveUpMs: 80 })
    expect([silent.status, silent.error]).toEqual([0, 'GAVE_UP'])
    sandbox.faults.clear()
    const fault: Fault = { kind: 'stall', at: 'body', bytes: 10 }
    const stuck = await under(fault, JSON_PATH, {}, { giveUpMs: 80 })
    expect([stuck.status, stuck.body.length, stuck.error]).toEqual([200, 10, 'GAVE_UP'])
    sandbox.faults.clear()
    const late = await under({ kind: 'stall', at: 'body', bytes: 10, ms: 20 })
    expect(late.body.equals(sandbox.feed.index())).toBe(true)
    sandbox.faults.clear()
    expect((await under({ kind: 'stall', ms: 20 })).body.equals(late.body)).toBe(true)
  })

  test('stall: does not prevent the sandbox from closing', async () => {
    const other = await open()
    other.faults.set(JSON_PATH, { kind: 'stall', at: 'body' })
    const stalled = await fetch(other.url + JSON_PATH)
    await other.close()
    await expect(stalled.text()).rejects.toThrow()
  })

  longTest('slow: sends the body slowly', async () => {
    const part = await under({ kind: 'slow', bytesPerSecond: 500 }, JSON_PATH, {}, { giveUpMs: 350 })
    expect(part.error).toBe('GAVE_UP')
    expect(part.body.length).toBeGreaterThan(0)
    expect(part.body.length).toBeLessThanOrEqual(200)
    sandbox.faults.clear()
    const all = await under({ kind: 'slow', bytesPerSecond: 1_000_000 }, ZIP_PATH)
    expect(all.body.equals(sandbox.feed.archive())).toBe(true)
  })

  test('reset: closes the connection before the headers or within the body', async () => {
    expect(await under({ kind: 'reset' })).toMatchObject({ status: 0, error: 'ECONNRESET' })
    sandbox.faults.clear()
    const cut = await under({ kind: 'reset', bytes: 1000 }, ZIP_PATH)
    expect(cut).toMatchObject({ status: 200, error: 'ECONNRESET' })
    expect(cut.body.length).toBeLessThanOrEqual(1000)
  })

  test('truncate: ends the connection before the declared length', async () => {
    const cut = await under({ kind: 'truncate', bytes: 100 }, ZIP_PATH)
    expect(cut.headers['content-length']).toBe(String(sandbox.feed.archive().length))
    expect([cut.body.length, cut.error]).toEqual([100, 'ECONNRESET'])
    sandbox.faults.clear()
    const half = await under({ kind: 'truncate' }, ZIP_PATH)
    expect(half.body.length).toBe(Math.floor(sandbox.feed.archive().length / 2))
  })

  test('wrongLength: declares more, or less, than it sends', async () => {
    const length = sandbox.feed.index().length
    const more = await under({ kind: 'wrongLength', by: 5 })
    expect(more.headers['content-length']).toBe(String(length + 5))
    expect([more.body.length, more.error]).toEqual([length, 'ECONNRESET'])
    sandbox.faults.clear()
    const less = await raw({ kind: 'wrongLength', by: -5 })
    expect(less).toContain(`Content-Length: ${length - 5}\r\n`)
    expect(less.slice(less.indexOf('\r\n\r\n') + 4)).toBe(sandbox.feed.index().toString())
  })

  test('html, empty, garbage, body: answer 200 with another body', async () => {
    const html = await under({ kind: 'html' })
    expect([html.status, html.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    sandbox.faults.clear()
    const empty = await under({ kind: 'empty' }, ZIP_PATH)
    expect([empty.status, empty.headers['content-length']]).toEqual([200, '0'])
    expect(empty.headers['content-type']).toBe('application/zip')
    sandbox.faults.clear()
    const garbage = await under({ kind: 'garbage', bytes: 33 }, JSON_PATH, {
      'accept-encoding': 'gzip',
    })
    expect([garbage.status, garbage.body.length]).toEqual([200, 33])
    expect(garbage.headers['content-encoding']).toBeUndefined()
    sandbox.faults.clear()
    const body = await under({ kind: 'body', body: '[1]', type: 'text/json', headers: { A: 'b' } })
    expect(body.body.toString()).toBe('[1]')
    expect(body.headers).toMatchObject({ 'content-type': 'text/json', a: 'b' })
  })

  test('contentType: sends the same bytes and validators with another type, or none', async () => {
    const sound = await exchange(sandbox.url + JSON_PATH)
    for (const type of ['text/html', '']) {
      const other = await under({ kind: 'contentType', type })
      expect(other.headers['content-type']).toBe(type === '' ? undefined : type)
      expect([other.body.equals(sound.body), other.headers.etag]).toEqual([true, sound.headers.etag])
      sandbox.faults.clear()
    }
  })

  test('corrupt: flips bytes under the same ETag', async () => {
    const whole = sandbox.feed.archive()
    const sound = await exchange(sandbox.url + ZIP_PATH)
    const spoiled = await under({ kind: 'corrupt', offset: -30, length: 2 }, ZIP_PATH)
    expect(spoiled.headers.etag).toBe(sound.headers.etag)
    const at = whole.length - 30
    expect(spoiled.body.length).toBe(whole.length)
    expect(spoiled.body.subarray(0, at).equals(whole.subarray(0, at))).toBe(true)
    expect(spoiled.body[at]).toBe((whole[at] ?? 0) ^ 0xff)
    expect(spoiled.body.subarray(at + 2).equals(whole.subarray(at + 2))).toBe(true)
    sandbox.faults.clear()
    expect(sandbox.feed.archive().equals(whole)).toBe(true)
  })

  test('redirect: points to another address', async () => {
    const location = 'http://elsewhere.invalid/all.json'
    const found = await under({ kind: 'redirect', location, status: 307 })
    expect([found.status, found.headers.location]).toEqual([307, location])
  })

  longTest('gzipBomb: sends few bytes that inflate to many', async () => {
    const bomb = await under({ kind: 'gzipBomb', bytes: 40_000_000 })
    expect(bomb.headers['content-encoding']).toBe('gzip')
    expect(bomb.body.length).toBeLessThan(100_000)
    expect(gunzipSync(bomb.body).length).toBe(40_000_000)
  })

  test('wrongRange and ignoreRange: hit only requests with a range', async () => {
    const range = { range: 'bytes=100-199' }
    const size = sandbox.feed.archive().length
    const right = sandbox.feed.archive().subarray(100, 200)
    const told = async (fault: Fault) => {
      sandbox.faults.clear()
      const { status, headers, body } = await under(fault, ZIP_PATH, range)
      return [status, headers['content-range'], body.equals(right)]
    }
    expect(await told({ kind: 'wrongRange' })).toEqual([206, `bytes 101-200/${size + 1}`, true])
    const total = `bytes 100-199/${size + 1000}`
    expect(await told({ kind: 'wrongRange', how: 'total' })).toEqual([206, total, true])
    const asked = `bytes 100-199/${size}`
    expect(await told({ kind: 'wrongRange', how: 'bytes' })).toEqual([206, asked, false])
    expect(await told({ kind: 'ignoreRange' })).toEqual([200, undefined, false])
    sandbox.faults.clear()
    const handle = sandbox.faults.set(ZIP_PATH, { kind: 'ignoreRange' })
    await exchange(sandbox.url + ZIP_PATH)
    expect(handle.hits()).toBe(0)
  })
})

describe('a fault in the index', () => {
  test('shrinkIndex: lists a fraction, under another ETag', async () => {
    const { headers } = await exchange(sandbox.url + JSON_PATH)
    const etag = headers.etag ?? ''
    const shrunk = await under({ kind: 'shrinkIndex', keep: 0.1 }, JSON_PATH, {
      'if-none-match': etag,
    })
    expect(shrunk.status).toBe(200)
    expect(idsOf(shrunk)).toEqual(sandbox.feed.ids().slice(0, 6))
  })

  test('ghostIds: lists ids without records; duplicateIds: lists some twice', async () => {
    const ghosts = idsOf(await under({ kind: 'ghostIds', count: 2 })).slice(-2)
    for (const id of ghosts) {
      expect((await exchange(sandbox.url + recordPath(id))).status).toBe(404)
    }
    sandbox.faults.clear()
    const twice = idsOf(await under({ kind: 'duplicateIds', count: 4 }))
    expect(twice.length - new Set(twice).size).toBe(4)
  })

  test('notArray: wraps the index in an object', async () => {
    const { body } = await under({ kind: 'notArray' })
    expect(JSON.parse(body.toString())).toHaveProperty('records')
  })
})

describe('a fault in records', () => {
  test('newerRecords and staleRecords: disagree with the index and leave it unchanged', async () => {
    const { feed, faults, url } = sandbox
    const id = feed.ids().find((each) => feed.modified(each).startsWith('202')) ?? ''
    const served = async (kind: 'newerRecords' | 'staleRecords') => {
      faults.clear()
      faults.set('/external/osv/*.json', { kind })
      expect((await exchange(url + JSON_PATH)).body.equals(feed.index())).toBe(true)
      const { body } = await exchange(url + recordPath(id))
      return Date.parse((JSON.parse(body.toString()) as { modified: string }).modified)
    }
    const indexed = Date.parse(feed.modified(id))
    expect(await served('newerRecords')).toBeGreaterThan(indexed)
    expect(await served('staleRecords')).toBeLessThan(indexed)
  })
})

describe('a fault in the archive', () => {
  test('wrongCrc: changes one member’s checksum in both headers', async () => {
    const { body } = await under({ kind: 'wrongCrc', member: 3 }, ZIP_PATH)
    const bad = new AdmZip(body).getEntries().filter((entry) => {
      try {
        entry.getData()
        return false
      } catch {
        return true
      }
    })
    expect(bad.map((entry) => entry.entryName)).toEqual([`${sandbox.feed.ids()[3] ?? ''}.json`])
  })

  test('truncatedZip: cuts the archive, and its Content-Length agrees', async () => {
    const { body, headers, error } = await under({ kind: 'truncatedZip', keep: 0.9 }, ZIP_PATH)
    expect(error).toBeUndefined()
    expect(headers['content-length']).toBe(String(body.length))
    expect(body.length).toBe(Math.floor(sandbox.feed.archive().length * 0.9))
  })

  test('archive: adds hostile members behind the feed’s own', async () => {
    sandbox.faults.archive('traversal', { times: 1 })
    const { body } = await exchange(sandbox.url + ZIP_PATH)
    expect(body.includes('../../evil.json')).toBe(true)
    expect(body.includes(`${sandbox.feed.ids()[0] ?? ''}.json`)).toBe(true)
    expect((await exchange(sandbox.url + ZIP_PATH)).body.equals(sandbox.feed.archive())).toBe(true)
  })
})
