import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A key for the private paths of servers that tests start themselves, as an entry of server.keys. */
export const TEST_KEY = 'test-key-Zk3v9wq7Rt5y2Lm8'

/** Request headers that bring a key. */
export function bearer(key: string = TEST_KEY): { Authorization: string } {
  return { Authorization: `Bearer ${key}` }
}

/** Request headers with the key that a daemon made for its data folder; throws where there is none. */
export function localKey(dataDir: string): { Authorization: string } {
  return bearer(readFileSync(join(dataDir, 'local.key'), 'utf8').trim())
}
