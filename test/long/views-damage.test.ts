import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { renameInViews } from '../support/damaged-views.ts'
import { type Hosted, openWorld } from '../support/daemons.ts'

const SOON = { interval: 50 }
const QUERY = { package: { ecosystem: 'npm', name: 'expat' }, version: '1.0.0' }
const RECORD = {
  id: 'ROOT-EXPAT',
  modified: '2026-05-01T00:00:00Z',
  affected: [
    { package: QUERY.package, ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '2.0.0' }] }] },
  ],
}
const SBOM = {
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  components: [{ type: 'library', name: 'expat', version: '1.0.0', purl: 'pkg:npm/expat@1.0.0' }],
}

/** A data folder with views of a record, and no daemon. */
async function open() {
  const world = await openWorld({ records: 5, service: false })
  onTestFinished(() => world.close())
  world.sandbox.feed.put(RECORD.id, JSON.stringify(RECORD), RECORD.modified)
  await world.patchmirror('sync')
  const sbom = join(world.dir, 'sbom.json')
  writeFileSync(sbom, JSON.stringify(SBOM))
  const match = () => world.patchmirror('match', '--json', sbom)
  expect((await match()).out).toContain(RECORD.id)
  return {
    match,
    rename: () => renameInViews(world.data, 'expat', 'exqat'),
    host: () => world.host(),
    patchmirror: (...args: string[]) => world.patchmirror(...args),
  }
}

/** What the query API of a daemon answers: its status, and the records. */
async function ask({ url }: Hosted): Promise<string> {
  const answer = await fetch(`${url}/osv/v1/query`, { method: 'POST', body: JSON.stringify(QUERY) })
  const { vulns = [] } = (await answer.json()) as { vulns?: { id: string }[] }
  return [answer.status, ...vulns.map(({ id }) => id)].join(' ')
}

const FOUND = `200 ${RECORD.id}`

/** All answers until the records are found again. */
async function answersUntilFound(daemon: Hosted): Promise<Set<string>> {
  const answers = new Set<string>()
  await expect.poll(async () => [...answers.add(await ask(daemon))], SOON).toContain(FOUND)
  return answers
}

async function damageOf({ url }: Hosted): Promise<number | undefined> {
  const { verified } = (await (await fetch(`${url}/-/status`)).json()) as { verified?: { damagedCount: number } }
  return verified?.damagedCount
}

test('a daemon that finds its views damaged at the start answers 503 until it has built them again', async () => {
  const { rename, host } = await open()
  rename()
  const daemon = await host()
  const answers = await answersUntilFound(daemon)
  expect([...answers].filter((one) => !one.startsWith('503'))).toEqual([FOUND])
})

test('views that "doctor --data" finds damaged are built again by the daemon, and the status names them no longer', async () => {
  const { rename, host, patchmirror } = await open()
  const daemon = await host()
  expect(await ask(daemon)).toBe(FOUND)
  rename()
  const doctor = await patchmirror('doctor', '--data')
  expect([doctor.code, doctor.out]).toEqual([1, expect.stringContaining('their database is damaged')])
  await expect.poll(() => ask(daemon), SOON).toMatch(/^503/)
  expect(await damageOf(daemon)).toBe(1)
  await daemon.said(/the bucket is made/)
  await answersUntilFound(daemon)
  await expect.poll(() => damageOf(daemon), SOON).toBe(0)
})

test('"doctor --data --repair" builds damaged views again, and the status names them no longer', async () => {
  const { rename, host, patchmirror } = await open()
  rename()
  const doctor = await patchmirror('doctor', '--data', '--repair')
  expect([doctor.code, doctor.out]).toEqual([0, expect.stringContaining('rebuilt')])
  const daemon = await host()
  expect([await ask(daemon), await damageOf(daemon)]).toEqual([FOUND, 0])
})

test('"match" builds damaged views again where no daemon runs', async () => {
  const { rename, match } = await open()
  rename()
  const { code, out, err } = await match()
  expect([code, out, err]).toEqual([0, expect.stringContaining(RECORD.id), expect.stringContaining('cannot be read')])
})
