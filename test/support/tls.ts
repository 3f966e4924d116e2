import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whether the command that makes certificates is there. */
export const hasOpenssl = spawnSync('openssl', ['version'], { stdio: 'ignore' }).status === 0

/** PEM texts, and the file of the authority. */
export interface Tls {
  key: string
  cert: string
  ca: string
  caFile: string
}

/** An authority of a test's own, and a certificate for `localhost` that it signed, in a folder of the test's. */
export function makeTls(dir: string): Tls {
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' })
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = ['-x509', '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test CA']
  openssl('req', ...newKey, ...ca)
  openssl('req', ...newKey, '-keyout', 'key.pem', '-out', 'request.pem', '-subj', '/CN=localhost')
  writeFileSync(join(dir, 'names'), 'subjectAltName=DNS:localhost,DNS:service.test\n')
  const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names']
  openssl('x509', '-req', '-in', 'request.pem', ...signed, '-out', 'cert.pem', '-days', '2')
  const read = (name: string): string => readFileSync(join(dir, name), 'utf8')
  return {
    key: read('key.pem'),
    cert: read('cert.pem'),
    ca: read('ca.pem'),
    caFile: join(dir, 'ca.pem'),
  }
}
