import { afterEach, describe, expect } from 'vitest'
import { createIdTable } from '../../../../src/sync/osv/id-table.ts'
import { refuseCostly } from '../../../../src/base/json/limits.ts'
import { faultOfRecordId } from '../../../../src/base/domain/record-id.ts'
import { plainText } from '../../../../src/base/text.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { longTest, test } from '../../../support/tables.ts'

const INDEX = '/external/osv/all.json'
const benches: Bench[] = []

afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close()
})

async function made(records = 60): Promise<Bench> {
  const bench = await createBench({ sandbox: { records } })
  benches.push(bench)
  return bench
}

/** Lets upstream's index be this text from now on. */
function serveIndex(bench: Bench, body: string, headers: Record<string, string> = {}): void {
  bench.sandbox.faults.set(INDEX, {
    kind: 'body',
    body: Buffer.from(body),
    type: 'application/json',
    headers,
  })
}

function entries(bench: Bench): { id: string; modified: string | null }[] {
  return JSON.parse(bench.sandbox.feed.index().toString()) as { id: string; modified: string }[]
}

describe('a hostile upstream', () => {
  test('deletes nothing by malformed stamps of listed records', async () => {
    const bench = await made()
    await bench.run('osv')
    const spoiled = entries(bench).map((entry, i) => (i < 15 ? { ...entry, modified: null } : entry))
    serveIndex(bench, JSON.stringify(spoiled))
    const report = await bench.run('osv')
    expect(report.facts['removed']).toBe(0)
    expect(bench.store.osv.countRecords()).toBe(60)
  })

  test('deletes nothing by malformed ids of listed records before an approval', async () => {
    const bench = await made()
    await bench.run('osv')
    const spoiled = entries(bench).map((entry, i) => (i < 3 ? { ...entry, id: null } : entry))
    serveIndex(bench, JSON.stringify(spoiled))
    const report = await bench.run('osv')
    expect(report.state).toBe('quarantined')
    expect(report.message).toContain('3 entries have no id')
    expect(bench.store.osv.countRecords()).toBe(60)
  })

  test('does not keep the mirror fresh by a false Date header', async () => {
    const bench = await made()
    const date = 'Fri, 01 Jan 2100 00:00:00 GMT'
    serveIndex(bench, bench.sandbox.feed.index().toString(), { date })
    const report = await bench.run('osv')
    expect(report.state).toBe('complete')
    expect(report.asOf).toBeLessThanOrEqual(Date.now())
  })

  longTest('does not fill the run log with an id of megabytes', async () => {
    const bench = await made()
    serveIndex(bench, JSON.stringify([...entries(bench), { id: 'x'.repeat(700_000), modified: '2026' }]))
    const report = await bench.run('osv')
    expect(report.state).toBe('partial')
    expect(JSON.stringify(report).length).toBeLessThan(20_000)
    bench.sandbox.faults.clear()
    serveIndex(bench, JSON.stringify([{ id: 'x'.repeat(2_000_000), modified: '2026' }]))
    expect(await bench.run('osv')).toMatchObject({ state: 'failed', code: 'upstream_shape' })
  })

  longTest('does not block later syncs by a validator that is too long to be sent', async () => {
    const bench = await made()
    serveIndex(bench, bench.sandbox.feed.index().toString(), { etag: `"${'e'.repeat(12_000)}"` })
    expect((await bench.run('osv')).state).toBe('complete')
    bench.sandbox.faults.clear()
    expect((await bench.run('osv')).state).toBe('complete')
  })

  longTest('is refused before parsing when its JSON is deeply nested or has millions of empty objects', async () => {
    const bench = await made()
    const nested = Buffer.from(`${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`)
    expect(refuseCostly(nested)).toContain('nested')
    expect(refuseCostly(Buffer.from(`[${'{},'.repeat(6_000_000)}{}]`))).toContain('objects and lists')
    expect(refuseCostly(Buffer.from(`[${'0,'.repeat(10_000_001)}0]`))).toContain('values')
    expect(refuseCostly(Buffer.from(`["${'[{'.repeat(1_000_000)}"]`))).toBeNull()
    bench.sandbox.faults.set('/external/globals/sys_matrix', {
      kind: 'body',
      body: nested,
      type: 'application/json',
    })
    const report = await bench.run('feeds')
    expect(report.state).toBe('partial')
    expect(report.message).toContain('nested')
  })

  test('cannot prepare colliding ids, because two tables place the same ids differently', () => {
    const tables = [createIdTable(64), createIdTable(64)]
    for (const table of tables) for (let i = 0; i < 5000; i++) table.set(`id-${i}`, '')
    expect(tables.map((table) => table.get('id-4999'))).toEqual([4999, 4999])
  })

  test('cannot choose an id that leads to another path or file', () => {
    for (const id of [
      'all',
      '../x',
      '/x',
      'C:\\x',
      'C:/x',
      'a\nb',
      'a\rb',
      '\ud800',
      'x'.repeat(8_000),
      '\\\\host\\share',
      'a\\b',
      'a\0b',
    ]) {
      expect(faultOfRecordId(id), id).not.toBeNull()
    }
    for (const id of [
      'GO-2024-1',
      'RHSA-2024:1234',
      'a/b',
      'ROOT-APP-NPM-',
      ' x ',
      'ünï',
      'all.zip',
      'ALL',
      'A:2025-1',
      '..',
      '%2e%2e',
      'a?b#c',
      '\ufffd',
    ]) {
      expect(faultOfRecordId(id), id).toBeNull()
    }
  })

  test('cannot write escape sequences to a terminal through the run log', () => {
    expect(plainText('a\u001b[31mred\n\u202eb')).toBe('a\\u001b[31mred\\u000a\\u202eb')
    expect(plainText('x'.repeat(400))).toHaveLength(301)
  })
})
