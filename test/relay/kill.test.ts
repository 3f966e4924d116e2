import { test } from 'vitest'
import { relayAndKill } from './killed-relay.ts'

test('a relay that is killed between sending and writing down loses nothing, and renames nothing', async () => {
  await relayAndKill(8, 2)
})
