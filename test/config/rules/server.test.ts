import { expect, test } from 'vitest'
import { fileWith, loadYaml, refusal } from '../loading.ts'

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'
const KEY = '-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n'

const load = (server: Record<string, unknown>) => loadYaml(JSON.stringify({ server }))

test('settings of the main listener that contradict each other are refused with both names', () => {
  const certFile = fileWith(CERTIFICATE, 'cert.pem')
  const keyFile = fileWith(KEY, 'key.pem')
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ certFile }, /server\.keyFile: not set, though server\.certFile \(file /],
    [{ keyFile }, /server\.certFile: not set, though server\.keyFile \(file /],
    [{ certFile, keyFile, listen: 'unix:m.sock' }, /server\.certFile .*server\.listen .*has no TLS/],
    [{ trustProxy: ['unix'] }, /server\.trustProxy .*unix stands for .*server\.listen is none/],
  ]
  for (const [server, fault] of cases) expect(refusal(() => load(server))).toMatch(fault)
})
