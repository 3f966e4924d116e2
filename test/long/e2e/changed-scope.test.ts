import { expect, onTestFinished, test } from 'vitest'
import { openWorld } from '../../support/daemons.ts'

test('a daemon that starts with another scope syncs at once; until then status and doctor say so', async () => {
  const world = await openWorld({ records: 30, service: false })
  onTestFinished(() => world.close())
  const first = await world.host()
  await first.said(/osv sync: complete/)
  await first.said(/feeds sync: complete/)
  await first.close()

  const [left = ''] = world.sandbox.feed.ids()
  world.env['PATCHMIRROR_OSV_SCOPE'] = `!${left}*`
  const status = await world.patchmirror('status')
  expect(status.code).toBe(3)
  expect(status.out).toMatch(
    /^ {2}run \d+ used another osv\.scope than this mirror has; what is stored follows it until/m,
  )
  const doctor = await world.patchmirror('doctor')
  expect(doctor.out).toMatch(/osv: its scope has changed \(run \d+ used another osv\.scope/)

  const next = await world.host()
  expect(await next.said(/osv sync: complete/)).toContain('out of scope')
  const { url } = next
  expect((await fetch(`${url}/external/osv/${encodeURIComponent(left)}.json`)).status).toBe(404)
  const { sources } = (await (await fetch(`${url}/-/status`)).json()) as {
    sources: { name: string; scopeChanged: string | null; lastRun: { id: number } }[]
  }
  expect(sources.map(({ name, scopeChanged }) => [name, scopeChanged])).toEqual([
    ['feeds', null],
    ['osv', null],
  ])
  const runs = await world.patchmirror('runs', '--json')
  const list = JSON.parse(runs.out) as { source: string; trigger: string }[]
  expect(list.map(({ source, trigger }) => `${source} ${trigger}`)[0]).toBe('osv start')
  expect(list.filter(({ source }) => source === 'feeds')).toHaveLength(1)
  expect((await world.patchmirror('status')).code).toBe(0)

  world.env['PATCHMIRROR_OSV_SCOPE'] = '!R*' // beside the daemon: everything
  const refused = await world.patchmirror('sync', 'osv')
  expect(refused.code).toBe(4)
  expect(refused.out).toContain('would remove all 29 records')
  const run = /approve (\d+)/.exec(refused.out)?.[1] ?? ''
  world.env['PATCHMIRROR_OSV_SCOPE'] = `!${left}*`
  const approved = await world.patchmirror('approve', run)
  expect(approved.code).toBe(2)
  expect(approved.err).toContain(`run ${run} used another osv.scope than this command has`)
  expect(JSON.parse((await world.patchmirror('runs', run, '--json')).out)).not.toMatchObject({
    facts: { decision: 'approved' },
  })
})
