// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// logOptions are the logging flags of every subcommand.
type logOptions struct {
	level  string
	format string
}

func (o *logOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.level, "log-level", "info", "least important log entries to write: debug, info, warn or error")
	flags.StringVar(&o.format, "log-format", "json", "form of log entries: json or text")
}

// logger makes the logger that the flags ask for. Entries go to standard error,
// those of the Kubernetes client libraries too.
func (o *logOptions) logger() (logr.Logger, error) {
	level, err := zapcore.ParseLevel(o.level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %q is none of debug, info, warn, error", o.level)
	}
	opts := []zap.Opts{zap.WriteTo(os.Stderr), zap.Level(uberzap.NewAtomicLevelAt(level))}
	switch o.format {
	case "json":
		opts = append(opts, zap.JSONEncoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }))
	case "text":
		opts = append(opts, zap.ConsoleEncoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339TimeEncoder }))
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is none of json, text", o.format)
	}
	log := zap.New(opts...)
	klog.SetLogger(log.WithName("client"))
	return log, nil
}
