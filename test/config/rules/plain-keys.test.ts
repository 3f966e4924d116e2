import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { warnOfPlainKeys } from '../../../src/config/rules/plain-keys.ts'

test.each([
  [{ HOST: '127.0.0.1' }, false],
  [{ HOST: '127.8.0.1' }, false],
  [{ HOST: 'localhost' }, false],
  [{ HOST: '::1' }, false],
  [{ HOST: '0.0.0.0' }, true],
  [{ HOST: '::' }, true],
  [{ HOST: '10.1.2.3' }, true],
  [{ HOST: '0.0.0.0', PUBLIC_URL: 'http://mirror.example' }, true],
  [{ HOST: '0.0.0.0', PUBLIC_URL: 'https://mirror.example' }, false],
  [{ SOCKET: '/run/patchmirror/s' }, false],
])('a mirror with %j is warned of keys over plain http: %s', (server, warned) => {
  const named = Object.entries(server).map(([name, value]) => [`PATCHMIRROR_SERVER_${name}`, value])
  const env = Object.fromEntries(named) as Record<string, string>
  const { config } = loadConfig({ env, cwd: '/' })
  expect(warnOfPlainKeys(config) !== null).toBe(warned)
})
