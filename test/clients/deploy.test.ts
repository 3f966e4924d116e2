import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { findTool, runTool } from '../support/tools.ts'
import { type Built, buildGo, installPython } from './toolbox.ts'

/* The deployment files, read by the programs that they are for. */

const HELM = { package: 'helm.sh/helm/v3/cmd/helm', version: 'v3.16.4' }
const CHART = 'deploy/helm/patchmirror'
const KUBERNETES = '1.31'
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-deploy-'))

afterAll(() => {
  rmSync(dir, { recursive: true, force: true })
})

/** Every option of the chart in use. */
const ALL = [
  'settings.upstream.apiRoot=https://api.example.com',
  'existingSecret=patchmirror',
  'secretKeys={PATCHMIRROR_UPSTREAM_API_KEY}',
  'persistence.storageClass=local',
  'ingress.enabled=true',
  'ingress.host=mirror.example.com',
  'ingress.tlsSecret=mirror-tls',
  'serviceMonitor.enabled=true',
  'networkPolicy.enabled=true',
  'podDisruptionBudget.enabled=true',
]

describe('the Helm chart', () => {
  let helm: Built
  beforeAll(async () => {
    helm = await buildGo(HELM)
  })

  const render = async (path: string, values: readonly string[]) => {
    const set = values.flatMap((value) => ['--set', value])
    return runTool(path, ['template', 'x', CHART, '--kube-version', KUBERNETES, ...set])
  }

  test('passes helm lint', async (context) => {
    if ('missing' in helm) return context.skip(`helm: ${helm.missing}`)
    const ran = await runTool(helm.path, ['lint', '--strict', CHART])
    expect(ran.code, ran.out + ran.err).toBe(0)
  })

  test('gives one object of each kind that was asked for, and no pod that may write to its image or become root', async (context) => {
    if ('missing' in helm) return context.skip(`helm: ${helm.missing}`)
    const bare = await render(helm.path, [])
    expect(kinds(bare.out).sort(), bare.err).toEqual(['ConfigMap', 'Service', 'StatefulSet'])
    expect(bare.out).toContain('patchmirror.yaml: |\n    {}') // settings that the program accepts
    const plain = await render(helm.path, ALL.slice(0, 1))
    expect(kinds(plain.out).sort()).toEqual(['ConfigMap', 'Service', 'StatefulSet'])
    const all = await render(helm.path, ALL)
    expect(all.code, all.err).toBe(0)
    expect(kinds(all.out)).toHaveLength(7)
    expect(all.out).toContain('readOnlyRootFilesystem: true')
    expect(all.out).toContain('runAsNonRoot: true')
    expect(all.out).not.toContain('PATCHMIRROR_UPSTREAM_API_KEY:')
  })

  test('refuses values that it does not have, and an ingress without a host', async (context) => {
    if ('missing' in helm) return context.skip(`helm: ${helm.missing}`)
    for (const value of ['unknown=1', 'ingress.enabled=true', 'service.port=0']) {
      const ran = await render(helm.path, [value])
      expect(ran.code, value).not.toBe(0)
    }
  })

  test('gives objects that the schemas of Kubernetes accept', async (context) => {
    if ('missing' in helm) return context.skip(`helm: ${helm.missing}`)
    const validate = await installPython('kubernetes-validate', '1.31.0', 'kubernetes-validate')
    if ('missing' in validate) return context.skip(`kubernetes-validate: ${validate.missing}`)
    const { out } = await render(helm.path, ALL)
    // Its schemas have the objects of Kubernetes itself only.
    const own = parseAllDocuments(out).filter((one) => one.get('kind') !== 'ServiceMonitor')
    const file = join(dir, 'objects.yaml')
    writeFileSync(file, own.map(String).join('---\n'))
    const ran = await runTool(validate.path, ['-k', KUBERNETES, '--strict', file])
    expect(ran.code, ran.out + ran.err).toBe(0)
  })
})

test('docker-compose reads the compose file', async (context) => {
  const compose = findTool('docker-compose')
  if (compose === null) return context.skip('docker-compose is not installed')
  const secret = join(dir, 'key')
  writeFileSync(secret, 'x')
  const env = {
    PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com',
    PATCHMIRROR_UPSTREAM_KEY_FILE: secret,
  }
  const ran = await runTool(compose, ['-f', 'deploy/compose.yaml', 'config'], { env })
  expect(ran.code, ran.err).toBe(0)
  const bare = await runTool(compose, ['-f', 'deploy/compose.yaml', 'config'], {
    env: { ...env, PATCHMIRROR_UPSTREAM_API_ROOT: '' },
  })
  expect(bare.code).not.toBe(0)
  expect(bare.err).toContain('the root URL of the service')
})

function kinds(text: string): string[] {
  return parseAllDocuments(text).map((one) => String(one.get('kind')))
}
