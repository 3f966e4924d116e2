import { afterAll, beforeAll, describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { type Served, type ServedOptions, closeAll, serve } from '../../server/served.ts'
import { FILLED_AT } from '../../support/filled-store.ts'
import { TEST_KEY } from '../../support/keys.ts'

const authorization = `Basic ${Buffer.from(`${TEST_KEY}:`).toString('base64')}`

type Decision = 'approved' | 'rejected' | 'superseded'
/** Views of VEX without two documents, which are damaged. */
const LACKING: Required<ServedOptions>['viewsMaker'] = {
  wanted: () => undefined,
  damaged: () => undefined,
  report: () => [
    {
      kind: 'vex',
      state: 'behind',
      snapshot: 'c1',
      madeAt: null,
      making: false,
      failing: false,
      odd: null,
      unread: 2,
    },
  ],
}

let served: Served
let publishing = 0
let doubtful = 0
const runs = new Map<Decision, number>()

beforeAll(async () => {
  served = await serve(
    (store) => {
      store.publishOsv({ 'CVE-2026-1': '{"id":"CVE-2026-1"}' })
      const refuse = (decision: Decision, at: number): void => {
        const id = store.addRun('osv', at, { state: 'quarantined' })
        const message = `it would remove the only one of the records; approve or reject run ${id}`
        store.damage(
          `UPDATE run SET message = '${message}' WHERE id = ${id};
           INSERT INTO quarantine (run_id, source, path, reason, sha256, body, as_of, decision, decided_at) VALUES
           (${id}, 'osv', '/external/osv/all.json', 'it would remove the only one of the records', x'0${runs.size}', x'00', 0, '${decision}', ${at + 5000})`,
        )
        runs.set(decision, id)
      }
      const approve = (at: number): number => {
        const id = store.addRun('osv', at, {})
        store.damage(`UPDATE run SET kind = 'approve' WHERE id = ${id}`)
        return id
      }
      for (const at of [4, 3, 2, 1]) store.addRun('feeds', FILLED_AT - at * 3_600_000, { snapshot: 'same' })
      const doubts = { facts: { doubts: 3, scopeSettings: ['osv.scope 4f53cda18c2b'] } }
      store.addRun('osv', FILLED_AT - 2 * 86_400_000, { ...doubts, message: 'of two days ago' })
      doubtful = store.addRun('osv', FILLED_AT - 3_600_000, doubts)
      refuse('superseded', FILLED_AT)
      refuse('approved', FILLED_AT + 10_000)
      publishing = approve(FILLED_AT + 12_000)
      approve(FILLED_AT + 20_000) // of another change, later
      refuse('rejected', FILLED_AT + 30_000)
    },
    { people: (config) => createWeb({ config, version: '9.9.9' }), viewsMaker: LACKING },
  )
})
afterAll(closeAll)

async function page(path: string): Promise<string> {
  const { status, body } = await served.get(`/-/ui/${path}`, { accept: 'text/html', authorization })
  expect(status).toBe(200)
  return body.toString()
}
const of = (decision: Decision): string => `run?id=${runs.get(decision) ?? 0}`

longTest(
  'the page of runs has one line for those in a row that changed nothing, which leads to each of them',
  async () => {
    const html = await page('runs?source=feeds')
    expect(html).toContain('3 runs without a change')
    expect(html).toMatch(/2026-06-30 21:00 UTC to<.*2026-06-30 23:00 UTC</s)
    const [, href = ''] = /href="\/-\/ui\/(runs\?[^"]*)"><bdi>3 runs</.exec(html) ?? []
    const each = await page(href.replaceAll('&amp;', '&'))
    expect(each.match(/ui\/run\?id=/g)).toHaveLength(4)
    expect(each).not.toContain('without a change')
  },
)

longTest('the page of a run shows no hashes of the settings that it followed', async () => {
  expect(await page(`run?id=${doubtful}`)).not.toContain('4f53cda18c2b')
})

describe('the page of a run that was decided about', () => {
  test('names the run that published an approved change', async () => {
    const html = await page(of('approved'))
    expect(html).toContain('It was published.')
    expect(html).toContain(`run?id=${publishing}"`)
    expect(html).toContain('quarantined, approved')
    for (const untrue of [
      'is served',
      'is listed below',
      'approve or reject run',
      'patchmirror approve',
      'patchmirror reject',
    ])
      expect(html).not.toContain(untrue)
  })

  test('says of a superseded change that a later run replaced it', async () => {
    const html = await page(of('superseded'))
    expect(html).toContain('A later run replaced it.')
    for (const untrue of ['is served', 'approve or reject run', 'patchmirror approve', 'patchmirror reject'])
      expect(html).not.toContain(untrue)
  })

  test('offers approve alone for a rejected change', async () => {
    const html = await page(of('rejected'))
    expect(html).toContain(`patchmirror approve ${runs.get('rejected') ?? 0}<`)
    expect(html).toContain('undoes the rejection')
    for (const untrue of ['patchmirror reject', 'approve or reject run']) expect(html).not.toContain(untrue)
  })
})

test('the overview warns of a rejected change that is still offered', async () => {
  const html = await page('')
  expect(html).toContain(
    'osv: a rejected change is still offered; nothing newer is published until upstream corrects it, or the settings of its scope change',
  )
  expect(html).toContain(`patchmirror approve ${runs.get('rejected') ?? 0}<`)
  expect(html).not.toContain('waits for your decision')
  expect(html).not.toContain('nothing waits for a decision')
})

test('the overview warns for 24 hours of a published change that should not be believed, after later runs too', async () => {
  const html = await page('')
  expect(html).toContain('osv: changes were published that should not be believed')
  expect(html).toContain(`patchmirror runs ${doubtful}<`)
  expect(html).not.toContain('of two days ago')
})

test('the overview names how many VEX documents the views lack, in its findings and its parts', async () => {
  const lacking = '2 documents are damaged and missing: patchmirror doctor --data --repair'
  const html = await page('')
  expect(html).toContain(`Views (vex): ${lacking}`)
  expect(html).toContain(`vex: behind, ${lacking}`)
})

test('the overview has a tick with words for each run of two days, which leads to the run for those with a key', async () => {
  const html = await page('')
  expect(html).toMatch(
    /<a class="tick bad" href="\/-\/ui\/run\?id=\d+" title="[^"]*quarantined \(run \d+\)" aria-label="2026/,
  )
  expect(html).toContain('partial or quarantined')
  const open = (await served.get('/-/ui/', { accept: 'text/html', authorization: '' })).body.toString()
  expect(open).toMatch(/<span class="tick bad" role="img" title="[^"]*quarantined/)
  expect(open).not.toContain('ui/run?id=')
})
