import type { FastifyPluginCallback } from 'fastify'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { type ServedDocument, answerWith, documentContract, makeServedDocument } from './served-document.ts'

/** Where `npm run build` writes it: at the top of the built program. */
const FILE = fileURLToPath(new URL('../../sbom.cdx.json', import.meta.url))
const TYPE = 'application/vnd.cyclonedx+json; version=1.5'

/** What the page of the SBOM is made from. */
interface SbomPageOptions {
  /** Another file than the one of the built program. */
  readonly file?: string
}

/** Serves the bill of materials of this program, in CycloneDX. It is read at the first request. */
export const sbomRoute: FastifyPluginCallback<SbomPageOptions> = (app, { file = FILE }, done) => {
  let read: ServedDocument | null = null
  const current = (): ServedDocument => (read ??= makeServedDocument(readSbom(file), TYPE))
  app.get('/-/sbom', { schema: SBOM_CONTRACT, config: { listed: 'own' } }, app.onNode(answerWith(current)))
  done()
}

function readSbom(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    const message =
      'this program runs from its sources, where its libraries are what is installed: only a built one ("npm run build") has a bill of materials'
    throw new MirrorError('not_found', message, { cause: error })
  }
}

const SBOM_CONTRACT = documentContract(
  {
    summary: 'The bill of materials of this program',
    description: 'A program that runs from its sources has none.',
  },
  'The libraries of the built program in CycloneDX 1.5.',
  { 'application/vnd.cyclonedx+json': { schema: { type: 'object' } } },
  404,
)
