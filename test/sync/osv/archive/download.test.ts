import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { type Bench, differences } from '../../../support/mirror.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'
import { ARCHIVE, bench, expectAgreement, told } from '../../fixtures.ts'

const NO_SINGLES = { singleFetches: 0 }
const PART = join('downloads', 'osv-all.zip.part')

function archiveRequests({ sandbox }: Bench) {
  return sandbox.requests.entries.filter(({ path }) => path === ARCHIVE)
}

/** A first run that breaks off after this many bytes of the archive, and does not try again. */
async function brokenOff(bytes: number, sandbox: object = {}): Promise<Bench> {
  const env = {
    LIMIT_UPSTREAM_RETRIES: '0',
    LIMIT_UPSTREAM_LOW_SPEED_SECONDS: '1',
  }
  const made = await bench({ env, limits: NO_SINGLES, sandbox: { records: 300, ...sandbox } })
  made.sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes })
  expect(await made.run('osv')).toMatchObject({ state: 'failed', code: 'upstream_unreachable' })
  made.sandbox.faults.clear()
  made.sandbox.requests.clear()
  return made
}

describe('the download of the archive', () => {
  const LARGE = { records: 400, large: 0 }
  /** Bytes after which a transfer breaks off: about a third of the archive. */
  const CUT = 110_000

  longTest('is resumed within the run after an interruption', async () => {
    const made = await bench({ sandbox: LARGE, limits: NO_SINGLES })
    made.sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes: CUT }, { times: 2 })
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 4 } })
    const sent = archiveRequests(made)
    expect(sent.map(({ status }) => status)).toEqual([200, 206, 206])
    expect(sent[1]?.headers).toMatchObject({
      range: expect.stringMatching(/^bytes=[1-9]\d+-$/) as string,
      'if-range': expect.stringMatching(/^"/) as string,
    })
    expect(differences(made)).toEqual([])
  })

  longTest('continues through any number of interruptions as long as each attempt makes progress', async () => {
    const made = await bench({ sandbox: LARGE, limits: NO_SINGLES })
    const size = made.sandbox.feed.archive().length
    made.sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes: Math.ceil(size / 5) })
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(archiveRequests(made).length).toBeGreaterThanOrEqual(5)
    expect(differences(made)).toEqual([])
  })

  test('is resumed by a later run after an interruption', async () => {
    const made = await brokenOff(CUT, LARGE)
    const have = statSync(join(made.dir, PART)).size
    expect(have).toBe(CUT) // every byte that had come
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    const range = `bytes=${have}-`
    expect(archiveRequests(made)).toMatchObject([{ status: 206, headers: { range } }])
    expect(readdirSync(join(made.dir, 'downloads'))).toEqual([])
    expect(differences(made)).toEqual([])
  })

  longTest('uses a part file that is complete', async () => {
    const made = await brokenOff(CUT, LARGE)
    writeFileSync(join(made.dir, PART), made.sandbox.feed.archive())
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(archiveRequests(made)).toMatchObject([{ status: 416 }])
    expect(differences(made)).toEqual([])
  })

  test('restarts after an interruption when the archive changed', async () => {
    const made = await brokenOff(CUT, LARGE)
    made.sandbox.feed.change(3)
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(archiveRequests(made)).toMatchObject([{ status: 200 }])
    expect(differences(made)).toEqual([])
  })

  longTest('restarts after an interruption where ranges are not supported', async () => {
    for (const sandbox of [{ ranges: false }, { validators: false }]) {
      const made = await brokenOff(CUT, { ...LARGE, ...sandbox })
      expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
      expect(archiveRequests(made).at(-1)).toMatchObject({ status: 200 })
      expect(differences(made)).toEqual([])
    }
  })

  bothTest.each(telling(['shifted', 'total', 'bytes'] as const, 'total'))(
    'refuses a continuation with a wrong range (%s)',
    async (how) => {
      const made = await bench({ sandbox: LARGE })
      made.sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes: CUT }, { times: 1 })
      made.sandbox.faults.set(ARCHIVE, { kind: 'wrongRange', how }, { times: 1 })
      expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
      expect(differences(made)).toEqual([])
      expectAgreement(made)
    },
  )

  const JUNK: [string, Buffer][] = [
    ['its part file is longer than the archive', Buffer.alloc(1_000_000, 'x')],
    ['its part file is not the beginning of the archive', Buffer.alloc(70_000, 'x')],
  ]
  bothTest.each(telling(JUNK, 'its part file is longer than the archive'))('recovers when %s', async (_name, junk) => {
    const made = await brokenOff(CUT, LARGE)
    writeFileSync(join(made.dir, PART), junk)
    expect(told(await made.run('osv'))).toMatchObject({ state: expect.any(String) as string })
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(differences(made)).toEqual([])
  })

  longTest('restarts when the note of its validator was cut short', async () => {
    const made = await brokenOff(CUT, LARGE)
    writeFileSync(join(made.dir, `${PART}.json`), '{"validator":"\\"x')
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(archiveRequests(made)).toMatchObject([{ status: 200 }])
    expect(differences(made)).toEqual([])
  })

  test('ends after the retries when every attempt breaks off at the same place', async () => {
    const made = await bench({ sandbox: { records: 300, validators: false }, limits: NO_SINGLES })
    made.sandbox.faults.set(ARCHIVE, { kind: 'truncate', bytes: 50_000 })
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_unreachable' })
    expect(archiveRequests(made).length).toBeLessThanOrEqual(5)
    expect(made.store.osv.countRecords()).toBe(0)
  })

  test.each([
    ['announced', {}],
    ['not announced', { kind: 'chunked' }],
  ])('stops at the size cap when its length is %s', async (_name, { kind }: { kind?: string }) => {
    const env = { PATCHMIRROR_UPSTREAM_MAX_BYTES: 'archive=50 KB' }
    const made = await bench({ sandbox: { records: 300 }, env, limits: NO_SINGLES })
    if (kind === 'chunked') made.sandbox.faults.set(ARCHIVE, { kind: 'wrongLength', by: -1e9 })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed' })
    if (kind === undefined) expect(report.code).toBe('upstream_too_large')
    const part = join(made.dir, PART)
    expect(existsSync(part) ? statSync(part).size : 0).toBeLessThanOrEqual(50_000)
  })

  longTest('gives up a transfer that is too slow', async () => {
    const env = {
      LIMIT_UPSTREAM_RETRIES: '0',
      LIMIT_UPSTREAM_LOW_SPEED_SECONDS: '1',
    }
    const made = await bench({ sandbox: { records: 60 }, env, limits: NO_SINGLES })
    made.sandbox.faults.set(ARCHIVE, { kind: 'slow', bytesPerSecond: 100 })
    const report = await made.run('osv')
    expect(told(report)).toEqual({ state: 'failed', code: 'upstream_unreachable' })
    expect(report.message).toContain('slower than 1000 bytes/s over 1 s')
  })

  longTest('gives up a stalled transfer', async () => {
    const env = {
      LIMIT_UPSTREAM_RETRIES: '0',
      LIMIT_UPSTREAM_LOW_SPEED_SECONDS: '1',
    }
    const made = await bench({ sandbox: { records: 60 }, env, limits: NO_SINGLES })
    made.sandbox.faults.set(ARCHIVE, { kind: 'stall', at: 'body', bytes: 9000 })
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_unreachable' })
  })

  test('ends at once when the run is stopped', async () => {
    let stop = (): void => undefined
    const made = await bench({
      sandbox: { records: 300 },
      onProgress: ({ phase, done }) => {
        if (phase === 'archive' && done >= 60_000) stop()
      },
    })
    stop = () => made.abort()
    made.sandbox.faults.set(ARCHIVE, { kind: 'stall', at: 'body', bytes: 60_000 })
    expect(told(await made.run('osv'))).toEqual({ state: 'stopped', code: 'aborted' })
    expect(made.store.osv.countRecords()).toBe(0)
  })
})
