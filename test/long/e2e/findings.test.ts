import { expect, onTestFinished, test } from 'vitest'
import { affecting, componentsOf } from '../../features/findings/fixtures.ts'
import { type Target, target } from '../../features/relay/targets.ts'
import { openWholeMirror } from '../../support/whole-mirror.ts'

const dataOf = ({ got }: Target) =>
  got.map(({ body }) => (JSON.parse(String(body)) as { data: { after: string; snapshot: string } }).data)

test('a daemon announces a new record about the packages of its tags to its targets', async () => {
  const to = await target()
  const mirror = await openWholeMirror({
    PATCHMIRROR_RELAY_TARGETS: to.url,
    PATCHMIRROR_RELAY_EVENTS: 'findings',
  })
  onTestFinished(() => mirror.close())
  const { sandbox, config } = mirror
  const state = async () => {
    const { findings } = (await (await mirror.get('/-/status')).json()) as {
      findings: { state: string }
    }
    return findings.state
  }
  await expect.poll(state).toBe('current')
  const [one] = componentsOf(config.data.dir)
  if (one === undefined) throw new Error('no component')
  expect(to.got).toHaveLength(0) // the first judgement is no change
  const stamp = new Date().toISOString()
  const record = { id: 'T-1', modified: stamp, ...affecting(one.ecosystem, one.name, '99999.0') }
  sandbox.feed.put('T-1', JSON.stringify(record), stamp)
  mirror.sync()
  await expect.poll(() => dataOf(to)).toMatchObject([{ cause: 'records', more: false }])
  const [told] = dataOf(to)
  const listed = (await (await mirror.get(`/-/tags/changes?after=${told?.after ?? ''}`)).json()) as object
  expect(listed).toMatchObject({ complete: true, next: null })
  for (const name of ['changes', 'position'] as const)
    expect((told as Record<string, unknown>)[name]).toEqual((listed as Record<string, unknown>)[name])
  const digest = /sha256:[0-9a-f]{64}/.exec(JSON.stringify(sandbox.service.read('tags', one.owner)))?.[0] ?? ''
  const { tags: [{ name = '' } = {}] = [] } = (await (await mirror.get(`/-/tags/findings?tag=${digest}`)).json()) as {
    tags?: { name?: string }[]
  }
  const names = [digest, one.owner, name, `registry.example.com/${name}`, `pkg:oci/a@${digest}?arch=amd64`]
  for (const path of ['/-/tags/findings', '/-/tags/changes'])
    for (const text of names) {
      const own = (await (await mirror.get(`${path}?tag=${encodeURIComponent(text)}`)).json()) as object
      const { tags, changes = [] } = own as { tags?: object[]; changes?: { tag: object }[] }
      expect([text, tags ?? changes.map(({ tag }) => tag)]).toMatchObject([text, [{ id: one.owner }]])
    }
  const { osv } = listed as { osv: { snapshot: string } }
  expect(told?.snapshot).toBe(osv.snapshot)
})
