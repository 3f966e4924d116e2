import { test } from 'vitest'
import { relayAndKill } from '../../relay/killed-relay.ts'

test('a relay that is killed between sending and recording loses no event, and keeps all ids', async () => {
  await relayAndKill(8, 2)
})
