import { expect } from 'vitest'
import { DAY, createClock } from '../fixtures.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { mirrored } from './fixtures.ts'
import { WIDE, announced, refresh } from '../refreshes.ts'
import { longTest, test } from '../../support/tables.ts'

test('a first snapshot records no new tags; a scheduled sync and a refresh record those that each found', async () => {
  const made = await mirrored(WIDE)
  const { service } = made.sandbox
  expect(made.store.catalog.listNewTags(0)).toEqual([])
  const tags = [service.addTag(), service.addTag()].map((tag) => announced(service, tag))
  const poll = await made.run('catalog', { trigger: 'schedule' })
  expect(poll.facts['arrived']).toBe(2)
  const named = tags.map(({ repository, tag, digest }) => ({ repository, tag, digest }))
  const told = named.map((names) => ({ ...names, runId: poll.id, trigger: 'schedule' }))
  expect(made.store.catalog.listNewTags(0)).toMatchObject(told)
  const event = announced(service, service.addTag())
  const { id } = await refresh(made, event)
  const [, , last] = made.store.catalog.listNewTags(0)
  expect(last).toMatchObject({ runId: id, trigger: 'webhook', digest: event.digest })
  expect(made.store.catalog.listNewTags((last?.at ?? 0) + 1)).toEqual([])
  expect(made.store.catalog.listNewTags(0, 1)).toHaveLength(1)
})

longTest(
  'a tag is recorded as new under another digest, not with another date, and not when it is not remediated',
  async () => {
    const made = await mirrored(WIDE)
    const { service } = made.sandbox
    const [one = '', two = '', three = ''] = service.ids('tags')
    service.change('tags', one)
    service.change('tags', three, { remediated: false, digest: `sha256:${'7'.repeat(64)}` })
    expect((await refresh(made)).facts['arrived']).toBeUndefined()
    service.change('tags', two, { digest: `sha256:${'8'.repeat(64)}` })
    expect((await refresh(made)).facts['arrived']).toBe(1)
    expect(made.store.catalog.listNewTags(0)).toMatchObject([{ digest: `sha256:${'8'.repeat(64)}` }])
  },
)

longTest('at most a thousand new tags of a run are recorded, for at most 30 days', async () => {
  const clock = createClock()
  const made = await catalogBench({ ...WIDE, subscriptions: 0 }, { now: clock.now, sandbox: { now: clock.now } })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  for (let i = 0; i < 1100; i++) made.sandbox.service.addTag()
  const { facts } = await refresh(made)
  expect(Number(facts['arrived'])).toBeGreaterThan(1000)
  expect(made.store.catalog.listNewTags(0)).toHaveLength(1000)
  clock.pass(31 * DAY)
  await made.run('catalog') // upstream's date says that the time has passed
  made.sandbox.service.addTag(made.sandbox.service.ids('images')[0])
  await made.run('catalog')
  expect(made.store.catalog.listNewTags(0)).toHaveLength(1)
})
