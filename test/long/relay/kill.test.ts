import { test } from 'vitest'
import { collectAndKill, relayAndKill } from '../../features/relay/killed-relay.ts'

test('a relay that is killed between sending and recording loses no event, and keeps all ids', async () => {
  await relayAndKill(8, 2)
})

test('a relay that is killed while it collects changed findings announces each of them once', async () => {
  await collectAndKill(300, 3)
})
